"""A wall clock for the processes of a soak that can be made to jump while they run.

A kernel has one wall clock for all its processes, and it is not a test's to change. So the
functions of the C library that read it are replaced in these processes alone, below Python and
gRPC, which both read it through them. Separate from the world that the processes live in.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_name("clock_jump.c")
NANOSECONDS = 1_000_000_000


class WallClock:
    """What moves the wall clock of every process that is started with `environment`."""

    def __init__(self, directory: Path) -> None:
        """Build the library in `directory`. Raises FileNotFoundError without a C compiler."""
        compiler = shutil.which("cc")
        if compiler is None:
            raise FileNotFoundError("cc: there is no C compiler")
        self._library = directory / "clock_jump.so"
        self._shift = directory / "clock_shift"
        self._shift.write_bytes(struct.pack("=q", 0))
        command = [compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC"]
        subprocess.run(
            [*command, "-o", str(self._library), str(SOURCE), "-ldl"],
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables for the processes."""
        return {"LD_PRELOAD": str(self._library), "NUMALIGN_CLOCK_SHIFT": str(self._shift)}

    def jump(self, seconds: float) -> None:
        """Set the clock so many seconds before or after the right time, at once."""
        # One write of eight bytes into the page that the processes have in memory.
        with self._shift.open("r+b", buffering=0) as file:
            file.write(struct.pack("=q", round(seconds * NANOSECONDS)))


def wall_clock(directory: Path) -> WallClock | None:
    """A clock, or None on a machine that has no C compiler."""
    return WallClock(directory) if shutil.which("cc") else None

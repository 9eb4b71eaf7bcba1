"""When a container's process was started, for runtimes that do not tell how old it is."""

from __future__ import annotations

import os
from pathlib import Path

_NANOSECONDS = 1_000_000_000


class StartTimes:
    """Reads a proc file system that shows the node's processes."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._ticks = os.sysconf("SC_CLK_TCK")

    def of(self, pid: int) -> int:
        """Nanoseconds from the boot to the start of a process; 0 where it cannot be seen."""
        if not pid:
            return 0
        try:
            text = (self._proc / str(pid) / "stat").read_text(encoding="ascii", errors="replace")
            # The name stands in brackets and may hold anything; 20 fields behind it is the time.
            ticks = int(text.rpartition(")")[2].split()[19])
        except (OSError, ValueError, IndexError):
            return 0
        return ticks * _NANOSECONDS // self._ticks

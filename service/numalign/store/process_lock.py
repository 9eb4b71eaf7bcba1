"""One process at a time per state file.

Separate from `database`, because the lock must be held before the file is looked at and
until after it is closed. The kernel drops the lock when the process ends, however it ends;
so a lock file that is left behind means nothing and is never removed.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Self

from numalign.errors import StateError


class ProcessLock:
    """An exclusive lock, held from `acquire` to `release` or the end of the process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, path: Path) -> Self:
        """Take the lock at `path` without waiting.

        Raises StateError naming the path and the holder's pid when somebody holds it, or
        when the file cannot be made.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StateError(f"cannot open the lock {path}: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise StateError(f"{path} is held by another process (pid {holder})") from error
        except OSError as error:
            os.close(descriptor)
            raise StateError(f"cannot lock {path}: {error.strerror}") from error
        return cls(path, descriptor)

    def release(self) -> None:
        """Give the lock back; calling it again does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

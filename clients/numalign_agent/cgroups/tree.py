"""The mounted control groups: reading, writing, making and removing, and nothing decided.

Version 2. What fails says which file, which value and why.
"""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path, PurePosixPath

from numalign_agent.cgroups.errors import (
    CONTROLLERS,
    PROCESSES,
    CgroupError,
    NoCgroups,
    not_done,
    not_written,
)

ROOT = Path("/sys/fs/cgroup")

_KILL = "cgroup.kill"
_EVENTS = "cgroup.events"
_EMPTY_SECONDS = 5.0
_POLL_SECONDS = 0.01


class CgroupTree:
    """A cgroup file system. Groups are absolute paths below its root, such as `/a/b`."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root

    def check(self) -> None:
        """Raises NoCgroups where this is not version 2."""
        if not (self._root / CONTROLLERS).is_file():
            raise NoCgroups(f"{self._root} is no cgroup version 2 file system")

    def path(self, group: PurePosixPath, file: str = "") -> Path:
        """Where a file of a group is."""
        return self._root / group.relative_to("/") / file

    def has(self, group: PurePosixPath) -> bool:
        """Whether there is such a group."""
        return self.path(group).is_dir()

    def files(self, group: PurePosixPath) -> frozenset[str]:
        """The names of a group's files."""
        directory = self.path(group)
        try:
            return frozenset(path.name for path in directory.iterdir())
        except OSError as error:
            raise CgroupError(not_done(str(directory), "list it", _number(error))) from error

    def read(self, group: PurePosixPath, file: str) -> str:
        """The content of a file, without its line end."""
        path = self.path(group, file)
        try:
            return path.read_text(encoding="ascii").strip()
        except OSError as error:
            raise CgroupError(not_done(str(path), "read it", _number(error))) from error

    def write(self, group: PurePosixPath, file: str, value: str) -> None:
        """Write a file."""
        path = self.path(group, file)
        try:
            # Opening it for writing alone: the kernel has made it, or there is none.
            descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(descriptor, value.encode("ascii"))
            finally:
                os.close(descriptor)
        except OSError as error:
            writable = os.access(path, os.W_OK)
            text = not_written(str(path), value, _number(error), writable=writable)
            raise CgroupError(text) from error

    def make(self, group: PurePosixPath) -> bool:
        """Make a group; False if there was one already."""
        path = self.path(group)
        try:
            path.mkdir()
        except FileExistsError:
            return False
        except OSError as error:
            raise CgroupError(not_done(str(path), "make the group", _number(error))) from error
        return True

    def processes(self, group: PurePosixPath) -> Path:
        """The file that a process joins the group by."""
        return self.path(group, PROCESSES)

    def fetch(self, group: PurePosixPath, pid: int) -> bool:
        """Move a process into the group; False if it is there already, or has ended."""
        if str(pid) in self.read(group, PROCESSES).split():
            return False
        path = self.processes(group)
        try:
            path.write_text(str(pid), encoding="ascii")
        except ProcessLookupError:
            return False
        except OSError as error:
            text = not_written(
                str(path), str(pid), _number(error), writable=os.access(path, os.W_OK)
            )
            raise CgroupError(text) from error
        return True

    def kill(self, group: PurePosixPath) -> bool:
        """Kill all processes of a group; False where the kernel (before 5.14) cannot."""
        if not self.path(group, _KILL).exists():
            return False
        self.write(group, _KILL, "1")
        return True

    def is_empty(self, group: PurePosixPath) -> bool:
        """Whether no process is in the group or below it."""
        return "populated 0" in self.read(group, _EVENTS)

    def remove(self, group: PurePosixPath) -> None:
        """Remove a group once its processes, which are ending, are gone. No group: fine."""
        path = self.path(group)
        deadline = time.monotonic() + _EMPTY_SECONDS
        while True:
            try:
                path.rmdir()
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno == errno.EBUSY and time.monotonic() < deadline:
                    time.sleep(_POLL_SECONDS)
                    continue
                text = not_done(str(path), "remove the group", _number(error))
                raise CgroupError(text) from error
            else:
                return


def _number(error: OSError) -> int:
    return error.errno or 0

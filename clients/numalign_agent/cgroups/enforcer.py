"""Makes control groups as they are wanted, and makes sure that they came to be so."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import PurePosixPath

from numalign_agent.cgroups.errors import CONTROLLERS, DELEGATED, PARTITION, CgroupError
from numalign_agent.cgroups.hugepages import sizes_of
from numalign_agent.cgroups.plan import (
    Partition,
    WantedGroup,
    Write,
    controllers,
    differences,
    missing,
    to_read,
    writes,
)
from numalign_agent.cgroups.tree import CgroupTree

_TOP = PurePosixPath("/")


class CgroupEnforcer:
    """Applies what is wanted to groups of one tree. May block shortly."""

    def __init__(self, tree: CgroupTree) -> None:
        self.tree = tree

    def apply(self, group: PurePosixPath, wanted: WantedGroup) -> None:
        """Make a group, if there is none, and set it.

        Groups above it are made, too, and hand on the controllers that are needed. Raises
        CgroupError where the kernel refuses something, or where afterwards something else is
        in force; a group that was made here is gone again then.
        """
        needed = self._needed(wanted)
        for parent in _above(group):
            self.tree.make(parent)
            self._hand_on(parent, needed)
        made = self.tree.make(group)
        try:
            self._set(group, wanted)
        except CgroupError:
            if made:
                self.tree.remove(group)
            raise

    def strayed(self, group: PurePosixPath, wanted: WantedGroup) -> tuple[str, ...]:
        """What of a group is not as it was applied, a sentence each."""
        if not self.tree.has(group):
            return (f"{self.tree.path(group)} is gone",)
        written = self._to_write(group, wanted)
        return differences(written, self._found(group, written))

    def prepare(self, parent: PurePosixPath, wanted: WantedGroup) -> None:
        """Make a group that such groups can be made below. Raises CgroupError."""
        needed = self._needed(wanted)
        for group in (*_above(parent), parent):
            self.tree.make(group)
            self._hand_on(group, needed)

    def remove(self, group: PurePosixPath) -> None:
        """Remove a group whose processes are ending. No group: fine. Raises CgroupError.

        The CPUs of a partition are the others' again when this returns; the kernel itself would
        give them back only some time after a group is gone.
        """
        if self.tree.has(group) and PARTITION in self.tree.files(group):
            with contextlib.suppress(CgroupError):
                # Not written where the group is just going by itself.
                self.tree.write(group, PARTITION, Partition.MEMBER.value)
        self.tree.remove(group)

    def _needed(self, wanted: WantedGroup) -> tuple[str, ...]:
        self.tree.check()
        return controllers(wanted, self.tree.read(_TOP, CONTROLLERS))

    def _hand_on(self, group: PurePosixPath, needed: tuple[str, ...]) -> None:
        lacking = missing(needed, self.tree.read(group, DELEGATED))
        if not lacking:
            return
        unknown = missing(lacking, self.tree.read(group, CONTROLLERS))
        if unknown:
            path = self.tree.path(group, CONTROLLERS)
            raise CgroupError(
                f"{path}: controller {unknown[0]} is not available: the kernel lacks it, cgroup "
                "version 1 has it, or the group above does not hand it on"
            )
        self.tree.write(group, DELEGATED, " ".join(f"+{name}" for name in lacking))

    def _set(self, group: PurePosixPath, wanted: WantedGroup) -> None:
        written = self._to_write(group, wanted)
        before = [Write(write.file, self.tree.read(group, write.file)) for write in written]
        try:
            for write in written:
                self.tree.write(group, write.file, write.value)
            self._read_back(group, written)
        except CgroupError:
            self._put_back(group, before)
            raise

    def _read_back(self, group: PurePosixPath, written: Iterable[Write]) -> None:
        wrong = differences(written, self._found(group, written))
        if wrong:
            raise CgroupError(f"{self.tree.path(group)}: {'; '.join(wrong)}")

    def _to_write(self, group: PurePosixPath, wanted: WantedGroup) -> tuple[Write, ...]:
        files = self.tree.files(group)
        return writes(wanted, files, sizes_of(files))

    def _found(self, group: PurePosixPath, written: Iterable[Write]) -> dict[str, str]:
        return {name: self.tree.read(group, name) for name in to_read(written)}

    def _put_back(self, group: PurePosixPath, before: Iterable[Write]) -> None:
        """As far as the kernel lets: what is told is why the new values were refused."""
        for write in before:
            with contextlib.suppress(CgroupError):
                self.tree.write(group, write.file, write.value or "\n")


def _above(group: PurePosixPath) -> Iterable[PurePosixPath]:
    """The groups around one, the root first: each has to hand on what the next one needs."""
    return reversed(group.parents)

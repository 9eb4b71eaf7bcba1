"""Who holds what a run was given: its process, named so that it can be told when it is gone. Pure.

The pod's uid says it, and so needs no file: whoever lists the admissions of the owner can tell
which of them are left over from a run that was killed together with its keeper.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_UID = re.compile(r"run-([0-9a-f]{12})-([0-9]+)-([0-9]+)-([0-9]+)\Z")


@dataclass(frozen=True, slots=True)
class Where:
    """A boot of a machine and a PID namespace: where a process number means something."""

    boot: str
    namespace: int


@dataclass(frozen=True, slots=True)
class Holder:
    """A process by its number and its start, in clock ticks since the boot."""

    where: Where
    pid: int
    start: int

    @property
    def uid(self) -> str:
        """The uid of its pod."""
        return f"run-{self.where.boot}-{self.where.namespace}-{self.pid}-{self.start}"


def where_of(boot_id: str, namespace: int) -> Where:
    """From the kernel's boot id and the inode of the PID namespace."""
    return Where(boot_id.replace("-", "")[:12], namespace)


def holder_of(uid: str) -> Holder | None:
    """The holder that a pod's uid names; None for a uid of another form."""
    found = _UID.match(uid)
    if found is None:
        return None
    boot, namespace, pid, start = found.groups()
    return Holder(Where(boot, int(namespace)), int(pid), int(start))


def can_be_gone(holder: Holder, here: Where) -> bool | None:
    """Whether a holder is gone, as seen from here: None if its process has to be looked at.

    Of another boot it is gone; in another PID namespace nothing can be said, so it is not.
    """
    if holder.where.boot != here.boot:
        return True
    return None if holder.where.namespace == here.namespace else False

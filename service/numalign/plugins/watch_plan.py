"""What the plugin watcher is to do next: from the sockets that are there and those taken in.

Pure: paths, identities and times come in. Separate from the watcher, which looks and calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 122.0
"""Bounds of the wait after a failure, which doubles each time (DEV-9)."""

Identity: TypeAlias = tuple[int, int]
"""Tells a socket from another that is made at its path later: inode, and time of making."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Until when nothing is done about a path, and how long that is."""

    until: float
    seconds: float


def longer(before: Wait | None, now: float) -> Wait:
    """The wait after a failure at `now`."""
    seconds = FIRST_WAIT_SECONDS if before is None else before.seconds * 2
    seconds = min(seconds, LONGEST_WAIT_SECONDS)
    return Wait(now + seconds, seconds)


@dataclass(frozen=True, slots=True)
class Plan:
    """Paths to let go, then paths to take in, each in ascending order."""

    unregister: tuple[Path, ...] = ()
    register: tuple[Path, ...] = ()

    def without(self, busy: Mapping[Path, object]) -> Plan:
        """The plan without paths that something is being done about (DEV-9)."""
        return replace(
            self,
            unregister=tuple(path for path in self.unregister if path not in busy),
            register=tuple(path for path in self.register if path not in busy),
        )


def plan(
    there: Mapping[Path, Identity],
    registered: Mapping[Path, Identity],
    waits: Mapping[Path, Wait],
    now: float,
) -> Plan:
    """What is due at `now` (DEV-9).

    A socket that was made anew is let go first and taken in at the next look.
    """
    unregister = tuple(path for path in sorted(registered) if there.get(path) != registered[path])
    register = tuple(
        path
        for path in sorted(there)
        if path not in registered and (path not in waits or waits[path].until <= now)
    )
    return Plan(unregister, register)

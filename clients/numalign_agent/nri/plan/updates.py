"""Which containers are to be told of another place, and in which order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from numalign.model.cpu_set import NO_CPUS
from numalign_agent.nri.plan.pinning import Pinning

NO_QUOTA = -1
"""A CFS quota that limits nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveContainer:
    """A container that is there: what is in force as far as known, and what is wanted.

    `quota` is the CFS quota that it was created with, in microseconds; 0 is none. A `wanted`
    of None leaves it alone.
    """

    id: str
    given: Pinning
    wanted: Pinning | None
    quota: int = 0


@dataclass(frozen=True, slots=True)
class Update:
    """What to set on one container; empty sets and None are left as they are."""

    container_id: str
    pinning: Pinning
    quota: int | None = None


def update_of(container: LiveContainer, *, set_quota: bool) -> Update | None:
    """What has to change on one container; None if nothing has to."""
    given, wanted = container.given, container.wanted
    if wanted is None:
        return None
    cpus = wanted.cpus if wanted.cpus != given.cpus else NO_CPUS
    mems = wanted.mems if wanted.mems != given.mems else NO_CPUS
    quota = None
    if set_quota and wanted.exclusive != given.exclusive:
        quota = NO_QUOTA if wanted.exclusive else container.quota or None
    if not cpus and not mems and quota is None:
        return None
    return Update(container.id, Pinning(cpus, mems, wanted.exclusive), quota)


def updates(containers: Iterable[LiveContainer], *, set_quota: bool) -> tuple[Update, ...]:
    """All changes, those first that take CPUs away: who gets them finds nobody there.

    A container whose CPUs are not known may run on any, so it is among the first.
    """
    taking: list[Update] = []
    giving: list[Update] = []
    for container in containers:
        update = update_of(container, set_quota=set_quota)
        if update is None:
            continue
        given, wanted = container.given.cpus, update.pinning
        loses = bool(wanted.cpus) and not (given and given.issubset(wanted.cpus))
        (taking if loses and not wanted.exclusive else giving).append(update)
    return (*taking, *giving)

"""How a pod stands with Admission, and where that puts each of its containers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from numalign.model.cpu_set import NO_CPUS, CpuSet
from numalign_agent.nri.plan.pinning import Pinning


class Standing(StrEnum):
    """What is decided about a pod."""

    WAITING = "waiting"
    """Nothing yet: its containers run in the shared pool, and it is decided on when possible."""

    ADMITTED = "admitted"
    """Admission has it on record."""

    ESTIMATED = "estimated"
    """Its spec cannot be had: its containers are admitted one by one, or not at all."""

    SHARED = "shared"
    """It was refused and runs all the same, in the shared pool."""

    REFUSED = "refused"
    """It was refused and does not run."""

    FOREIGN = "foreign"
    """Somebody else places it; it is left alone."""


Grants = Mapping[str, Pinning]
"""By container what Admission gave it; without CPUs it runs in the shared pool."""


def pinning_of(
    standing: Standing, container: str, grants: Grants, shared: CpuSet | None
) -> Pinning | None:
    """Where a container is to run; None leaves it alone.

    `shared` are the CPUs of the shared pool, None as long as they are not known. Where the pool
    is empty there is nothing to set either (CPU-82).
    """
    if standing is Standing.FOREIGN:
        return None
    grant = grants.get(container) if standing in _WITH_GRANTS else None
    if grant is not None and grant.exclusive:
        return grant
    mems = NO_CPUS if grant is None else grant.mems
    if not shared and not mems:
        return None
    return Pinning(cpus=shared or NO_CPUS, mems=mems)


def shared_pool(told: CpuSet | None, grants: Iterable[Pinning]) -> CpuSet | None:
    """The CPUs that shared containers may use: those that Admission told, less what it gave away.

    An answer to Admit comes before the news that the pool has changed because of it.
    """
    if told is None:
        return None
    for grant in grants:
        if grant.exclusive:
            told -= grant.cpus
    return told


_WITH_GRANTS = frozenset({Standing.ADMITTED, Standing.ESTIMATED})

"""Which placer a node gets: what was asked for, or what it can have."""

from __future__ import annotations

from dataclasses import dataclass

from numalign_agent.cgroups.placer import CgroupPlacer
from numalign_agent.cgroups.settings import CgroupSettings
from numalign_agent.config.enforce import Enforce
from numalign_agent.runners.affinity import AffinityPlacer
from numalign_agent.runners.placer import CannotPlace, ContainerPlacer


@dataclass(frozen=True, slots=True)
class Chosen:
    """A placer, and what it is. `lacking` says why it is not the better one, if it is not."""

    placer: ContainerPlacer | None
    enforce: Enforce
    lacking: str = ""


def choose(enforce: Enforce, settings: CgroupSettings) -> Chosen:
    """The placer for a way of enforcing. Raises CannotPlace where `cgroup` cannot be had."""
    match enforce:
        case Enforce.NONE:
            return Chosen(None, Enforce.NONE)
        case Enforce.AFFINITY:
            return Chosen(AffinityPlacer(), Enforce.AFFINITY)
        case Enforce.CGROUP:
            return Chosen(_checked(settings), Enforce.CGROUP)
        case Enforce.AUTO:
            try:
                return Chosen(_checked(settings), Enforce.CGROUP)
            except CannotPlace as error:
                return Chosen(AffinityPlacer(), Enforce.AFFINITY, str(error))


def _checked(settings: CgroupSettings) -> CgroupPlacer:
    placer = CgroupPlacer(settings)
    placer.check()
    return placer

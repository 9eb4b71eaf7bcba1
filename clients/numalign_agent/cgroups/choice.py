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

    placer: ContainerPlacer
    enforce: Enforce
    lacking: str = ""


def choose(enforce: Enforce, settings: CgroupSettings) -> Chosen:
    """The placer for a way of enforcing other than none.

    Raises CannotPlace where `cgroup` is asked for and cannot be had.
    """
    if enforce is Enforce.AFFINITY:
        return Chosen(AffinityPlacer(), Enforce.AFFINITY)
    placer = CgroupPlacer(settings)
    try:
        placer.check()
    except CannotPlace as error:
        if enforce is Enforce.CGROUP:
            raise
        return Chosen(AffinityPlacer(), Enforce.AFFINITY, str(error))
    return Chosen(placer, Enforce.CGROUP)

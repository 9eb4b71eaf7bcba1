"""What the kernel says a container may use, held against what it should."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from numalign.model.cpu_set import CpuSet
from numalign_agent.nri.plan.pinning import Pinning


class Drift(StrEnum):
    """How far a container is from where it should be."""

    NONE = "none"
    """It is there."""

    NARROWER = "narrower"
    """It may use less than it should: the pool has grown, or a CPU is offline."""

    UNPINNED = "unpinned"
    """It may use what it should not."""


@dataclass(frozen=True, slots=True)
class Actual:
    """What the kernel lets a container use."""

    cpus: CpuSet
    mems: CpuSet


def drift_of(wanted: Pinning, actual: Actual) -> Drift:
    """Compare what is set; a setting that is left alone counts as right."""
    pairs = ((wanted.cpus, actual.cpus), (wanted.mems, actual.mems))
    found = Drift.NONE
    for want, have in pairs:
        if not want or have == want:
            continue
        if not have.issubset(want):
            return Drift.UNPINNED
        found = Drift.NARROWER
    return found


def drift_text(wanted: Pinning, actual: Actual) -> str:
    """Where a container is and where it should be, as far as they differ."""
    parts = []
    if wanted.cpus and actual.cpus != wanted.cpus:
        parts.append(f"it may use CPUs {actual.cpus}, and should use {wanted.cpus}")
    if wanted.mems and actual.mems != wanted.mems:
        parts.append(f"it may use NUMA nodes {actual.mems}, and should use {wanted.mems}")
    return "; ".join(parts)

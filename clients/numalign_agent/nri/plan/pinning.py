"""Where a container is to run, or runs: the value that everything here compares."""

from __future__ import annotations

from dataclasses import dataclass

from numalign.model.cpu_set import NO_CPUS, CpuSet


@dataclass(frozen=True, slots=True)
class Pinning:
    """CPUs and NUMA nodes of one container; an empty set leaves that setting alone.

    `exclusive` says that nobody else may run on the CPUs, so that no CFS quota is needed
    either (CPU-87).
    """

    cpus: CpuSet = NO_CPUS
    mems: CpuSet = NO_CPUS
    exclusive: bool = False


LEFT_ALONE = Pinning()

"""The numbers that the CPU provider publishes, worked out from states. Section 18.

Gauges are read off a state; counters are read off one step from a state to the next. Who
publishes them, and under which names, is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from numalign.cpu.eligibility import container_count, container_counts, is_left_alone, pod_count
from numalign.cpu.state import CpuState, exclusive_cpus
from numalign.cpu.static_setup import StaticSetup
from numalign.cpu.topology import CpuTopology
from numalign.model.cpu_set import CpuSet
from numalign.model.pod import Container, Pod
from numalign.provider.engine import Allocated


@dataclass(frozen=True, slots=True)
class PoolNumbers:
    """The gauges: shared CPUs in thousandths, exclusive CPUs, and those by NUMA node.

    Nodes without an exclusive CPU are left out.
    """

    shared_millicores: int
    exclusive_count: int
    per_numa: Mapping[int, int]


def pool_numbers(state: CpuState, topology: CpuTopology, reserved: CpuSet) -> PoolNumbers:
    """The gauges as a start from `state` sets them: each CPU counts once."""
    exclusive = exclusive_cpus(state.assignments).bits
    per_numa = {node: (cpus & exclusive).bit_count() for node, cpus in topology.nodes.items()}
    return PoolNumbers(
        shared_millicores=1000 * len(state.default - reserved),
        exclusive_count=exclusive.bit_count(),
        per_numa={node: count for node, count in per_numa.items() if count},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationNumbers:
    """What one allocation adds to the counters.

    `taken` is how many CPUs it gave, reused ones included: the kubelet's gauges move by it.
    """

    requests: int = 0
    errors: int = 0
    aligned_physical_cpu: int = 0
    misaligned_physical_cpu: int = 0
    aligned_uncore_cache: int = 0
    taken: int = 0
    exclusive_assignments: int = 0
    shared_assignments: int = 0


def container_numbers(
    setup: StaticSetup,
    before: CpuState,
    outcome: Allocated[CpuState],
    pod: Pod,
    container: Container,
) -> AllocationNumbers:
    """What one container's allocation adds; nothing if it got to no decision (CPU-44)."""
    if is_left_alone(pod, setup.gates) or not container_count(pod, container, setup.gates):
        return AllocationNumbers()
    whole_cores = int(setup.options.full_pcpus_only)
    if outcome.failure is not None:
        return AllocationNumbers(requests=1, errors=1, misaligned_physical_cpu=whole_cores)
    cpus = outcome.state.assignment(pod.uid, container.name)
    if cpus is None or before.assignment(pod.uid, container.name) is not None:
        return AllocationNumbers(requests=1, aligned_physical_cpu=whole_cores)
    return AllocationNumbers(
        requests=1,
        aligned_physical_cpu=whole_cores,
        aligned_uncore_cache=int(is_in_one_cache(cpus, setup.topology)),
        taken=len(cpus),
        exclusive_assignments=1,
    )


def pod_numbers(setup: StaticSetup, outcome: Allocated[CpuState], pod: Pod) -> AllocationNumbers:
    """What the allocation of a pod with resources of its own adds (CPU-76).

    A pod that was refused before it was cut up counts no request.
    """
    if not pod_count(pod, setup.gates) or is_left_alone(pod, setup.gates):
        return AllocationNumbers()
    if outcome.failure is not None:
        return AllocationNumbers(errors=1)
    counts = container_counts(pod, setup.gates)
    exclusive = sum(1 for count in counts.values() if count)
    cpus = outcome.state.pod_sets[pod.uid]
    return AllocationNumbers(
        requests=exclusive,
        aligned_uncore_cache=int(is_in_one_cache(cpus, setup.topology)),
        taken=len(cpus),
        exclusive_assignments=exclusive,
        shared_assignments=len(counts) - exclusive,
    )


def is_in_one_cache(cpus: CpuSet, topology: CpuTopology) -> bool:
    """Whether the CPUs share one uncore cache; at most one CPU always does (CPU-49)."""
    if len(cpus) <= 1:
        return True
    return any(cpus.bits & ~cache == 0 for cache in topology.uncores.values())

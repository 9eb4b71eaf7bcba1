"""CPUs for a pod with resources of its own: one set for the pod, cut up for its containers.

Rules CPU-75..CPU-79.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from numalign.cpu.accumulator import AssignmentError
from numalign.cpu.eligibility import container_counts, empty_pool, is_left_alone, pod_count
from numalign.cpu.state import CpuState
from numalign.cpu.static_setup import StaticSetup
from numalign.cpu.take import Taker
from numalign.model.cpu_set import NO_CPUS, CpuSet
from numalign.model.numa_mask import NumaMask
from numalign.model.pod import Pod
from numalign.provider.engine import Allocated
from numalign.provider.values import AllocationFailure

EMPTY_POD_SHARED_POOL_ERROR = "EmptyPodSharedPoolError"


def allocate_pod(
    setup: StaticSetup, state: CpuState, pod: Pod, affinity: NumaMask | None
) -> Allocated[CpuState]:
    """Take the pod's CPUs and give each container its part (CPU-76).

    A pod that holds CPUs already gets more: there is no check (CPU-78). If the CPUs cannot
    be cut up, the pod keeps them as a whole.
    """
    count = pod_count(pod, setup.gates)
    if count == 0 or is_left_alone(pod, setup.gates):
        return Allocated(state)
    problem = empty_pool(pod, count, setup.gates)
    if problem:
        return Allocated(state, AllocationFailure(problem, EMPTY_POD_SHARED_POOL_ERROR))
    failure = setup.smt_failure(state, count)
    if failure:
        return Allocated(state, failure)
    try:
        taken, cpus = setup.allocate_cpus(state, count, affinity, NO_CPUS)
    except AssignmentError as error:
        return Allocated(state, AllocationFailure(str(error)))
    failure = setup.shared_failure(state, taken)
    if failure:
        return Allocated(state, failure)
    state = replace(taken, pod_sets={**state.pod_sets, pod.uid: cpus})
    try:
        parts = partition(cpus, pod, container_counts(pod, setup.gates), setup.take)
    except AssignmentError as error:
        return Allocated(state, AllocationFailure(str(error)))
    for container, part in parts.items():
        state = state.with_assignment(pod.uid, container, part)
    return Allocated(state)


def partition(cpus: CpuSet, pod: Pod, counts: Mapping[str, int], take: Taker) -> dict[str, CpuSet]:
    """The part of each container, in order of decision (CPU-76 steps 5 and 6).

    `counts` holds each container's exclusive CPUs. Containers without any share what is left
    at the end; an init container that ends runs on all that no sidecar has. Raises
    AssignmentError.
    """
    parts: dict[str, CpuSet] = {}
    pool = cpus
    for container in pod.init_containers:
        count = counts[container.name]
        if count:
            part = CpuSet(take(pool.bits, count))
            parts[container.name] = part
            if container.restartable:
                pool -= part
        elif not container.restartable:
            parts[container.name] = pool
    for container in pod.containers:
        count = counts[container.name]
        if count:
            part = CpuSet(take(pool.bits, count))
            parts[container.name] = part
            pool -= part
    return {c.name: parts.get(c.name, pool) for c in pod.all_containers()}

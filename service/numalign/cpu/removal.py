"""Giving CPUs back: one container, one pod, or everything that is not active any more.

Rules CPU-69..CPU-73 and CPU-80.
"""

from __future__ import annotations

from dataclasses import replace

from numalign.cpu.state import CpuState, exclusive_cpus, union
from numalign.model.cpu_set import NO_CPUS
from numalign.model.ids import PodUid
from numalign.provider.engine import Sources


def remove_container(
    state: CpuState, pod_uid: PodUid, container: str, *, pod_sets: bool
) -> CpuState:
    """Give back what the container holds and no other container of its pod does (CPU-69).

    With `pod_sets`, the CPUs of a pod that holds a set as a whole stay its own until its last
    container goes (CPU-80). A container that holds nothing is no error.
    """
    cpus = state.assignment(pod_uid, container)
    if cpus is None:
        return state
    state = state.without_assignment(pod_uid, container)
    others = state.assignments.get(pod_uid)
    pod_set = state.pod_sets.get(pod_uid) if pod_sets else None
    if pod_set is None:
        released = cpus - union(others) if others else cpus
        return replace(state, default=state.default | released)
    if others:
        return state
    kept = {pod: held for pod, held in state.pod_sets.items() if pod != pod_uid}
    return replace(state, default=state.default | pod_set, pod_sets=kept)


def remove_stale(state: CpuState, sources: Sources, *, pod_sets: bool) -> CpuState:
    """Give back what containers hold that are not active (CPU-72).

    Without a list of active pods nothing is stale.
    """
    if sources.active is None:
        return state
    stale = [
        (pod_uid, container)
        for pod_uid, containers in state.assignments.items()
        for container in containers
        if not sources.is_active(pod_uid, container)
    ]
    for pod_uid, container in stale:
        state = remove_container(state, pod_uid, container, pod_sets=pod_sets)
    return state


def release_pod(state: CpuState, pod_uid: PodUid) -> CpuState:
    """Give back everything the pod holds, each CPU once.

    Containers of the pod may hold the same CPUs (reuse, pod sets). A CPU that another pod
    holds as well stays with that pod.
    """
    containers = state.assignments.get(pod_uid, {})
    held = union(containers) | state.pod_sets.get(pod_uid, NO_CPUS)
    assignments = {pod: c for pod, c in state.assignments.items() if pod != pod_uid}
    pod_sets = {pod: cpus for pod, cpus in state.pod_sets.items() if pod != pod_uid}
    others = exclusive_cpus(assignments)
    for cpus in pod_sets.values():
        others |= cpus
    return CpuState(
        default=state.default | (held - others),
        assignments=assignments,
        pod_sets=pod_sets,
        reusable={pod: cpus for pod, cpus in state.reusable.items() if pod != pod_uid},
    )

"""Forgetting containers and pods: their entries go, and their bytes come back.

Separate from booking because it decides what to give back; booking only moves bytes. Each
function returns the very state it got where nothing was held.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from numalign.memory import booking
from numalign.memory.state import MemoryState
from numalign.model.ids import PodUid
from numalign.model.pod import Container, Pod


def remove_container(state: MemoryState, pod_uid: PodUid, container: str) -> MemoryState:
    """Give back what one container holds (MEM-49).

    Containers that share their pod's booking give nothing back until the last one goes.
    """
    entries = state.containers.get(pod_uid)
    if entries is None or container not in entries:
        return state
    left = {name: blocks for name, blocks in entries.items() if name != container}
    removed = state.with_containers(pod_uid, left)
    if pod_uid not in state.pods:
        return replace(removed, machine=booking.release(state.machine, entries[container]))
    return removed if left else _release_pod_blocks(removed, pod_uid)


def release_pod(state: MemoryState, pod_uid: PodUid) -> MemoryState:
    """Give back everything the pod holds, each byte once.

    Containers go in order of name: which of them were init containers is not known any more.
    """
    for container in sorted(state.containers.get(pod_uid, {})):
        state = remove_container(state, pod_uid, container)
    if pod_uid in state.pods:
        state = _release_pod_blocks(state, pod_uid)
    if pod_uid in state.reusable:
        state = replace(
            state,
            reusable={uid: left for uid, left in state.reusable.items() if uid != pod_uid},
        )
    return state


def add_container(state: MemoryState, pod: Pod, container: Container) -> MemoryState:
    """`container` is about to start: the regular init containers before it are done (MEM-51)."""
    for earlier in pod.init_containers:
        if earlier.name == container.name:
            break
        if not earlier.restartable:
            state = remove_container(state, pod.uid, earlier.name)
    return state


def remove_stale(state: MemoryState, active: Mapping[PodUid, frozenset[str]]) -> MemoryState:
    """Remove every container that is not among the active ones (MEM-54)."""
    stale = [
        (pod_uid, container)
        for pod_uid, entries in state.containers.items()
        for container in entries
        if container not in active.get(pod_uid, frozenset())
    ]
    for pod_uid, container in stale:
        state = remove_container(state, pod_uid, container)
    return state


def _release_pod_blocks(state: MemoryState, pod_uid: PodUid) -> MemoryState:
    return replace(
        state,
        machine=booking.release(state.machine, state.pods[pod_uid]),
        pods={uid: blocks for uid, blocks in state.pods.items() if uid != pod_uid},
    )

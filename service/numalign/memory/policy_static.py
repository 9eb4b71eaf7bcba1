"""The Static policy: memory of Guaranteed pods is booked on chosen NUMA nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from numalign.memory import booking, pod_level
from numalign.memory.eligibility import (
    NOT_AN_INTEGER,
    PodLevel,
    Request,
    container_request,
    pod_request,
)
from numalign.memory.eligibility import pod_level as pod_level_of
from numalign.memory.facts import resource_facts
from numalign.memory.faults import MemoryFault, of_container
from numalign.memory.hints import compute_hints, regenerate_hints
from numalign.memory.machine_state import Reusable
from numalign.memory.reuse import shrink_init_blocks, update_reusable
from numalign.memory.select import choose_mask
from numalign.memory.state import Blocks, MemoryState
from numalign.model.feature_gates import FeatureGates
from numalign.model.hint import ProviderHints, TopologyHint
from numalign.model.ids import PodUid
from numalign.model.pod import Container, Pod
from numalign.model.qos import is_guaranteed
from numalign.provider.engine import Allocated
from numalign.provider.values import AllocationFailure, ResourceFacts

NAME = "Static"

_NOTHING_REUSABLE: Reusable = {}


class StaticPolicy:
    """Decides by the rules of sections 4 to 9; keeps nothing but the feature gates."""

    name = NAME

    def __init__(self, gates: FeatureGates) -> None:
        self._gates = gates

    def requested(self, pod: Pod, container: Container | None) -> Request | None:
        """The bytes placed for a container, or (None) the pod; None where there are none."""
        if not self._places(pod):
            return None
        if container is None:
            return pod_request(pod, self._gates)
        return container_request(pod, container, self._gates)

    def topology_hints(self, state: MemoryState, pod: Pod, container: Container) -> ProviderHints:
        """Hints for one container (MEM-24).

        Raises MemoryFault where the kubelet would crash (MEM-29).
        """
        if not self._places(pod):
            return None
        request = container_request(pod, container, self._gates)
        if request is None:
            return None
        stored = state.blocks(pod.uid, container.name)
        if stored is not None:
            return regenerate_hints(stored, request)
        return _hints(state, pod, container.name, request)

    def pod_topology_hints(self, state: MemoryState, pod: Pod) -> ProviderHints:
        """Hints for the pod as a whole (MEM-25).

        Raises MemoryFault where the kubelet would crash (MEM-29).
        """
        if not self._places(pod):
            return None
        request = pod_request(pod, self._gates)
        if request is None:
            return None
        if pod_level_of(pod, self._gates) is PodLevel.MANAGED:
            requests = pod_level.container_requests(pod, self._gates)
            if requests is None:
                return None
            if pod_level.empty_shared_pool(pod, request, requests):
                return dict.fromkeys(request, ())
        if not request:
            return None
        for container in pod.all_containers():
            stored = state.blocks(pod.uid, container.name)
            if stored is not None:
                return regenerate_hints(stored, request)
        return _hints(state, pod, None, request)

    def facts(
        self,
        state: MemoryState,
        pod: Pod,  # noqa: ARG002 - the books are the same for every pod
        request: Request,
    ) -> tuple[ResourceFacts, ...]:
        """What stands behind the hints for `request`."""
        return resource_facts(state, request)

    def allocate(
        self, state: MemoryState, pod: Pod, container: Container, affinity: TopologyHint
    ) -> Allocated[MemoryState]:
        """Book what one container asks for (MEM-32)."""
        if not self._places(pod):
            return Allocated(state)
        stored = state.blocks(pod.uid, container.name)
        if stored is not None:
            return Allocated(_note_reuse(state, pod.uid, container, stored))
        request = container_request(pod, container, self._gates)
        if request is None:
            return Allocated(state, AllocationFailure(NOT_AN_INTEGER))
        reusable = state.reusable.get(pod.uid, _NOTHING_REUSABLE)
        try:
            mask = choose_mask(state.machine, request, affinity, reusable)
            if isinstance(mask, AllocationFailure):
                return Allocated(state, mask)
            blocks = booking.make_blocks(mask, request)
            machine = booking.book(state.machine, blocks, reusable, mask)
        except MemoryFault as fault:
            named = of_container(fault, pod.name, container.name)
            return Allocated(state, AllocationFailure(str(named)))
        entries: Mapping[str, Blocks] = {
            **state.containers.get(pod.uid, {}),
            container.name: blocks,
        }
        entries = shrink_init_blocks(entries, pod, container, blocks)
        booked = replace(state, machine=machine).with_containers(pod.uid, entries)
        return Allocated(_note_reuse(booked, pod.uid, container, blocks))

    def allocate_pod(
        self, state: MemoryState, pod: Pod, affinity: TopologyHint
    ) -> Allocated[MemoryState]:
        """Book what the pod asks for, and share it out among its containers (MEM-58..MEM-61).

        As in the kubelet there is no look at what the pod holds already (MEM-T5).
        """
        if not is_guaranteed(pod, self._gates):
            return Allocated(state)
        request = pod_request(pod, self._gates)
        requests = pod_level.container_requests(pod, self._gates)
        if request is None or requests is None:
            return Allocated(state)
        problem = pod_level.empty_shared_pool(pod, request, requests)
        if problem is not None:
            return Allocated(state, AllocationFailure(problem, pod_level.EMPTY_SHARED_POOL))
        reusable = state.reusable.get(pod.uid, _NOTHING_REUSABLE)
        try:
            mask = choose_mask(state.machine, request, affinity, reusable)
            if isinstance(mask, AllocationFailure):
                return Allocated(state, mask)
            blocks = booking.make_blocks(mask, request)
            machine = booking.book(state.machine, blocks, _NOTHING_REUSABLE, mask)
        except MemoryFault as fault:
            named = of_container(fault, pod.name, None)
            return Allocated(state, AllocationFailure(str(named)))
        entries = {
            **state.containers.get(pod.uid, {}),
            **pod_level.divide(pod, request, requests, mask),
        }
        booked = replace(state, machine=machine, pods={**state.pods, pod.uid: blocks})
        return Allocated(booked.with_containers(pod.uid, entries))

    def _places(self, pod: Pod) -> bool:
        """Whether memory is placed for the pod at all (MEM-17, MEM-20)."""
        return (
            is_guaranteed(pod, self._gates)
            and pod_level_of(pod, self._gates) is not PodLevel.BARRED
        )


def _hints(state: MemoryState, pod: Pod, container: str | None, request: Request) -> ProviderHints:
    try:
        return compute_hints(state.machine, request, state.reusable.get(pod.uid, _NOTHING_REUSABLE))
    except MemoryFault as fault:
        raise of_container(fault, pod.name, container) from fault


def _note_reuse(
    state: MemoryState, pod_uid: PodUid, container: Container, blocks: Blocks
) -> MemoryState:
    """Bookkeeping after a container got its blocks, or had them already (MEM-44)."""
    before = state.reusable.get(pod_uid, _NOTHING_REUSABLE)
    after = update_reusable(before, container, blocks)
    if after == before and state.reusable.keys() <= {pod_uid}:
        return state
    return replace(state, reusable={pod_uid: after} if after else {})

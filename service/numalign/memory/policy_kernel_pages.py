"""The Static policy that looks at the kernel's free huge pages before it gives any away.

Separate from the Static policy, which is the kubelet's: this one is put around it where a switch
asks for it. Hints and masks are chosen over books that are cut down to what the kernel has free;
what is booked stands in the real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from numalign.errors import Deferred
from numalign.memory.eligibility import Request
from numalign.memory.facts import resource_facts
from numalign.memory.kernel_pages import (
    KernelFree,
    as_the_kernel_has_it,
    has_huge_pages,
    lacks,
    less_own,
    shortage,
)
from numalign.memory.policy_static import StaticPolicy
from numalign.memory.state import Blocks, MemoryState
from numalign.model.hint import ProviderHints, TopologyHint
from numalign.model.numa_mask import mask_of
from numalign.model.pod import Container, Pod
from numalign.model.settings import KernelHugePages
from numalign.provider.engine import Allocated
from numalign.provider.values import AllocationFailure, MemoryBlock, ResourceFacts

REASON = "HugePagesInUse"
"""Reason of a pod whose huge pages somebody else uses without a booking."""

RETRY_SECONDS = 5.0
"""When to ask again for a pod that has to wait for huge pages."""

AskKernel = Callable[[], KernelFree]
"""Reads what the kernel has free now. Raises Unavailable where it cannot be read."""


@dataclass(frozen=True, slots=True)
class KernelCheck:
    """How the kernel is asked, and what becomes of a pod that it has no pages for.

    `mode` is `defer` or `refuse`.
    """

    ask: AskKernel
    mode: KernelHugePages


@dataclass(frozen=True, slots=True)
class KernelPagesPolicy:
    """Decides as `policy` does where the kernel has what the books have."""

    policy: StaticPolicy
    kernel: KernelCheck

    @property
    def name(self) -> str:
        """That of the Static policy."""
        return self.policy.name

    def requested(self, pod: Pod, container: Container | None) -> Request | None:
        """The bytes placed for a container, or (None) the pod; None where there are none."""
        return self.policy.requested(pod, container)

    def topology_hints(self, state: MemoryState, pod: Pod, container: Container) -> ProviderHints:
        """Hints for one container. Raises what the Static policy does, Deferred, Unavailable."""
        return self._hints(
            state,
            pod,
            container,
            lambda seen: self.policy.topology_hints(seen, pod, container),
        )

    def pod_topology_hints(self, state: MemoryState, pod: Pod) -> ProviderHints:
        """Hints for the pod. Raises what the Static policy does, Deferred, Unavailable."""
        return self._hints(state, pod, None, lambda seen: self.policy.pod_topology_hints(seen, pod))

    def allocate(
        self, state: MemoryState, pod: Pod, container: Container, affinity: TopologyHint
    ) -> Allocated[MemoryState]:
        """Book what one container asks for. Raises Deferred and Unavailable."""
        if state.blocks(pod.uid, container.name) is not None:
            return self.policy.allocate(state, pod, container, affinity)
        return self._allocate(
            state,
            pod,
            container,
            affinity,
            lambda on, where: self.policy.allocate(on, pod, container, where),
            lambda after: after.blocks(pod.uid, container.name) or (),
        )

    def allocate_pod(
        self, state: MemoryState, pod: Pod, affinity: TopologyHint
    ) -> Allocated[MemoryState]:
        """Book what the pod asks for as a whole. Raises Deferred and Unavailable."""
        return self._allocate(
            state,
            pod,
            None,
            affinity,
            lambda on, where: self.policy.allocate_pod(on, pod, where),
            lambda after: after.pods.get(pod.uid, ()),
        )

    def facts(self, state: MemoryState, pod: Pod, request: Request) -> tuple[ResourceFacts, ...]:
        """What stands behind the hints, with no more free than the kernel has."""
        if not has_huge_pages(request):
            return self.policy.facts(state, pod, request)
        free = self._free_for(state, pod)
        return tuple(
            _noted(fact, lacks(state.machine, free, fact.resource))
            for fact in resource_facts(_seen(state, free), request)
        )

    def _hints(
        self,
        state: MemoryState,
        pod: Pod,
        container: Container | None,
        hints: Callable[[MemoryState], ProviderHints],
    ) -> ProviderHints:
        if not self._asks(pod, container):
            return hints(state)
        free = self._free_for(state, pod)
        seen = hints(_seen(state, free))
        if seen or seen is None:
            return seen
        by_the_books = hints(state)
        if by_the_books and self.kernel.mode is KernelHugePages.DEFER:
            request = self.policy.requested(pod, container) or {}
            anywhere = tuple(
                MemoryBlock(numa_nodes=tuple(state.machine), resource=resource, size=size)
                for resource, size in request.items()
            )
            raise self._deferred(shortage(state.machine, anywhere, free) or _SCATTERED)
        # Refused with the figures when it comes to the allocation.
        return by_the_books

    def _allocate(
        self,
        state: MemoryState,
        pod: Pod,
        container: Container | None,
        affinity: TopologyHint,
        allocate: Callable[[MemoryState, TopologyHint], Allocated[MemoryState]],
        booked: Callable[[MemoryState], Blocks],
    ) -> Allocated[MemoryState]:
        if not self._asks(pod, container):
            return allocate(state, affinity)
        free = self._free_for(state, pod)
        tried = allocate(_seen(state, free), affinity)
        if tried.failure is None:
            nodes = {node for block in booked(tried.state) for node in block.numa_nodes}
            if not nodes:
                return allocate(state, affinity)
            return allocate(state, TopologyHint(mask_of(nodes), affinity.preferred))
        outcome = allocate(state, affinity)
        if outcome.failure is not None:
            return outcome
        message = shortage(state.machine, booked(outcome.state), free) or _SCATTERED
        if self.kernel.mode is KernelHugePages.DEFER:
            raise self._deferred(message)
        return Allocated(state, AllocationFailure(message, REASON))

    def _asks(self, pod: Pod, container: Container | None) -> bool:
        return has_huge_pages(self.policy.requested(pod, container) or ())

    def _free_for(self, state: MemoryState, pod: Pod) -> KernelFree:
        return less_own(self.kernel.ask(), _own(state, pod))

    def _deferred(self, message: str) -> Deferred:
        return Deferred(REASON, message, RETRY_SECONDS)


_SCATTERED = "the kernel's free huge pages are on other NUMA nodes than the pod's could be"


def _seen(state: MemoryState, free: KernelFree) -> MemoryState:
    return replace(state, machine=as_the_kernel_has_it(state.machine, free))


def _own(state: MemoryState, pod: Pod) -> Iterable[MemoryBlock]:
    """What the pod has booked and not touched: it is not admitted yet."""
    whole = state.pods.get(pod.uid)
    if whole is not None:
        return whole
    entries = state.containers.get(pod.uid, {})
    return [block for blocks in entries.values() for block in blocks]


def _noted(fact: ResourceFacts, note: str) -> ResourceFacts:
    return replace(fact, note="; ".join(filter(None, (fact.note, note))))

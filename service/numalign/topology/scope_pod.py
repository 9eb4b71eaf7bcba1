"""Scope `pod`: all containers of a pod are aligned together. Rules TM-42, TM-43."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from numalign.model.hint import TopologyHint
from numalign.model.pod import Pod
from numalign.provider.values import AllocationFailure
from numalign.topology.allocation_strategy import AllocationOrder
from numalign.topology.numa_info import MissingDistance
from numalign.topology.policy import Policy
from numalign.topology.ports import Providers
from numalign.topology.reasons import (
    NOT_ALIGNED,
    NOT_ALIGNED_POD_LEVEL_POD_SCOPE,
    affinity_rejection,
    allocation_rejection,
)
from numalign.topology.scope import Attempt, ScopeResult

NAME = "pod"


@dataclass(frozen=True, slots=True)
class PodScope:
    """One merge per pod, whose hint goes to every container.

    `managed_as_whole` tells the pods whose resources are managed at pod level: they are
    allocated in one go, the others container by container. `order`, if there is one, decides
    between equally wide masks.
    """

    policy: Policy
    managed_as_whole: Callable[[Pod], bool]
    order: AllocationOrder | None = None
    name: str = NAME

    async def admit(self, pod: Pod, providers: Providers) -> ScopeResult:
        """Hints and verdict for the pod, then the allocations under that one hint."""
        attempt = Attempt(self.policy, self.order)
        as_whole = self.managed_as_whole(pod)
        try:
            merged = await attempt.judge(pod, None, providers)
        except MissingDistance as missing:
            return attempt.undecidable(missing)
        if not merged.admitted:
            message = NOT_ALIGNED_POD_LEVEL_POD_SCOPE if as_whole else NOT_ALIGNED
            return attempt.not_aligned(affinity_rejection(message))
        allocate = _allocate_whole if as_whole else _allocate_each
        failure = await allocate(pod, merged.best, providers, attempt)
        if failure is not None:
            return attempt.not_allocated(allocation_rejection(failure))
        attempt.count_aligned()
        return attempt.admitted()


async def _allocate_whole(
    pod: Pod, affinity: TopologyHint, providers: Providers, attempt: Attempt
) -> AllocationFailure | None:
    for container in pod.all_containers():
        attempt.store(container.name, affinity)
    return await providers.allocate_pod(pod, affinity, last=True)


async def _allocate_each(
    pod: Pod, affinity: TopologyHint, providers: Providers, attempt: Attempt
) -> AllocationFailure | None:
    containers = pod.all_containers()
    for number, container in enumerate(containers, start=1):
        attempt.store(container.name, affinity)
        failure = await providers.allocate(pod, container, affinity, last=number == len(containers))
        if failure is not None:
            return failure
    return None

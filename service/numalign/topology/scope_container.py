"""Scope `container`: each container is aligned for itself. Rule TM-41."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from numalign.model.pod import Pod
from numalign.topology.allocation_strategy import AllocationOrder
from numalign.topology.numa_info import MissingDistance
from numalign.topology.policy import Policy
from numalign.topology.ports import Providers
from numalign.topology.reasons import (
    NOT_ALIGNED,
    NOT_ALIGNED_POD_LEVEL_CONTAINER_SCOPE,
    affinity_rejection,
    allocation_rejection,
)
from numalign.topology.scope import Attempt, ScopeResult

NAME = "container"


@dataclass(frozen=True, slots=True)
class ContainerScope:
    """One merge per container, after the containers before it were allocated.

    `managed_as_whole` tells the pods whose resources are managed at pod level; here it only
    changes the message. `order`, if there is one, decides between equally wide masks.
    """

    policy: Policy
    managed_as_whole: Callable[[Pod], bool]
    order: AllocationOrder | None = None
    name: str = NAME

    async def admit(self, pod: Pod, providers: Providers) -> ScopeResult:
        """Hints, verdict and allocation for one container after the other."""
        attempt = Attempt(self.policy, self.order)
        containers = pod.all_containers()
        for number, container in enumerate(containers, start=1):
            try:
                merged = await attempt.judge(pod, container, providers)
            except MissingDistance as missing:
                return attempt.undecidable(missing)
            if not merged.admitted:
                return attempt.not_aligned(affinity_rejection(self._message(pod)))
            attempt.store(container.name, merged.best)
            failure = await providers.allocate(
                pod, container, merged.best, last=number == len(containers)
            )
            if failure is not None:
                return attempt.not_allocated(allocation_rejection(failure))
            attempt.count_aligned()
        return attempt.admitted()

    def _message(self, pod: Pod) -> str:
        if self.managed_as_whole(pod):
            return NOT_ALIGNED_POD_LEVEL_CONTAINER_SCOPE
        return NOT_ALIGNED

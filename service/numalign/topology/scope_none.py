"""Scope `none`, that of policy `none`: allocate without asking where. Rule TM-40."""

from __future__ import annotations

from dataclasses import dataclass

from numalign.model.hint import NO_HINT
from numalign.model.pod import Pod
from numalign.topology.ports import Providers
from numalign.topology.reasons import allocation_rejection
from numalign.topology.scope import ScopeResult

NAME = "none"


@dataclass(frozen=True, slots=True)
class NoneScope:
    """Asks for no hints, stores none, and never counts an error."""

    name: str = NAME

    async def admit(self, pod: Pod, providers: Providers) -> ScopeResult:
        """Allocate container by container; the first failure refuses the pod."""
        containers = pod.all_containers()
        for number, container in enumerate(containers, start=1):
            failure = await providers.allocate(
                pod, container, NO_HINT, last=number == len(containers)
            )
            if failure is not None:
                rejection = allocation_rejection(failure)
                return ScopeResult(
                    admitted=False, reason=rejection.reason, message=rejection.message
                )
        return ScopeResult(admitted=True)

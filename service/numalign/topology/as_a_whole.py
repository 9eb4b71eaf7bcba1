"""Deciding once more on a pod that was refused container by container: the pod as a whole.

Separate from the decision, which goes on with what comes out: here is when it is tried, and what
the answer says of it. Beyond the kubelet, whose scope has the last word (TM-41).
"""

from __future__ import annotations

from dataclasses import dataclass

from numalign.errors import Deferred
from numalign.model.pod import Pod
from numalign.topology.explainer import Explainer
from numalign.topology.fanout import Fanout
from numalign.topology.provider_handle import ProviderFault
from numalign.topology.reasons import unexpected_rejection
from numalign.topology.scope import Scope, ScopeResult


@dataclass(frozen=True, slots=True)
class AsAWhole:
    """How such a pod is decided on; `instead_of` is the scope that refused it."""

    scope: Scope
    explainer: Explainer
    instead_of: str

    def is_for(self, pod: Pod, refused: ScopeResult) -> bool:
        """Whether anything else can come out than what `refused` says."""
        return not refused.admitted and not refused.keeps_nothing and len(pod.all_containers()) > 1

    def warning(self, refused: ScopeResult) -> str:
        """What the answer says of a pod that was admitted so."""
        return (
            f"decided in scope {self.scope.name}, since scope {self.instead_of} would have refused "
            f"it ({refused.reason}: {refused.message})"
        )


async def result_of(scope: Scope, pod: Pod, fanout: Fanout) -> ScopeResult:
    """What the scope decides; that the pod cannot be judged, or not yet, is a result as well."""
    try:
        return await scope.admit(pod, fanout)
    except ProviderFault as fault:
        refusal = unexpected_rejection(str(fault))
        return ScopeResult(
            admitted=False, reason=refusal.reason, message=refusal.message, keeps_nothing=True
        )
    except Deferred as deferred:
        return ScopeResult(
            admitted=False,
            reason=deferred.reason,
            message=str(deferred),
            keeps_nothing=True,
            retry_after=deferred.retry_after,
        )

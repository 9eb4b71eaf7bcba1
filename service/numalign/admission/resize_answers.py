"""How a resize is answered: never, later, or what the pod is allocated now (RSZ-6).

Separate from the chain, whose handlers refuse a resize as they refuse an addition.
"""

from __future__ import annotations

from numalign.admission.chain.built_in import FRESH_NODE_NEEDED
from numalign.admission.resizes.conditions import DEFERRED, INFEASIBLE
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

RETRY_SECONDS = 180
"""When a deferred resize is evaluated again at the latest (RES-3)."""


def answer_resize(response: ad.AdmitResponse, allocated: pb.PodResources) -> None:
    """Make of what the chain says to a resize the answer to it.

    A refusal is final where its reason is `Infeasible`; any other one is a deferral, and the
    handler's own reason is told apart. A pod that is not resized has `allocated`.
    """
    if response.verdict == pb.VERDICT_ADMITTED:
        return
    response.resources.CopyFrom(allocated)
    if response.victims or response.reason == FRESH_NODE_NEEDED:
        # The caller has something to do, and asks again at once.
        return
    response.handler_reason = response.reason
    if response.verdict == pb.VERDICT_REJECTED and response.reason == INFEASIBLE:
        return
    response.verdict = pb.VERDICT_DEFERRED
    response.reason = DEFERRED
    if not response.HasField("retry_after"):
        response.retry_after.seconds = RETRY_SECONDS

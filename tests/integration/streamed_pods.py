"""Streams of pods as callers send them, and what is read of their answers."""

from __future__ import annotations

from collections.abc import Iterable

from tests.integration.node_document import pod

from numalign.kube.core.v1 import core_pb2
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import types_pb2 as pb

ADMITTED, REJECTED, DEFERRED = pb.VERDICT_ADMITTED, pb.VERDICT_REJECTED, pb.VERDICT_DEFERRED


def small(uid: str) -> core_pb2.Pod:
    """A pod for which there is room many times."""
    made = pod(uid, gpus=0)
    made.spec.containers[0].resources.limits.clear()
    made.spec.containers[0].resources.requests.clear()
    return made


async def stream(
    stub: ad_grpc.AdmissionAsyncStub,
    requests: Iterable[ad.AdmitRequest | core_pb2.Pod],
    within: float = 60.0,
) -> list[ad.AdmitPodsResponse]:
    """Every answer to a stream that is sent without waiting for any."""
    items = [
        ad.AdmitPodsRequest(
            admit=each if isinstance(each, ad.AdmitRequest) else ad.AdmitRequest(pod=each)
        )
        for each in requests
    ]
    return [answer async for answer in stub.AdmitPods(iter(items), timeout=within)]


def verdicts(answers: Iterable[ad.AdmitPodsResponse]) -> list[int]:
    """The verdicts; what is no decision has its gRPC code, negative."""
    return [
        -answer.error.code if answer.HasField("error") else answer.decision.verdict
        for answer in answers
    ]

"""Asking for past decisions, and the names of the pods that their explanations mention."""

from __future__ import annotations

from collections.abc import Iterable

from numalign.cli.calls import answer, channel_to
from numalign.cli.endpoint import Endpoint
from numalign.config.settings import Service
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub

_MANY = 2000


async def list_decisions(
    socket: Endpoint, request: dc.ListDecisionsRequest, seconds: float
) -> tuple[dc.ListDecisionsResponse, dc.ListDecisionsResponse, dict[str, str]]:
    """The decisions asked for; all there are, where there is none of those; and pods by uid.

    Raises AioRpcError, or Unreachable.
    """
    async with channel_to(socket) as channel:
        stub = AdmissionStub(channel)
        call = stub.ListDecisions(request, timeout=seconds)
        found = await answer(Service.ADMISSION, socket, call)
        kept = dc.ListDecisionsResponse()
        if not found.decisions:
            kept = await stub.ListDecisions(dc.ListDecisionsRequest(limit=_MANY), timeout=seconds)
        listed = await stub.ListAdmissions(ad.ListAdmissionsRequest(), timeout=seconds)
    return found, kept, names_of(listed, found.decisions)


async def get_decision(
    socket: Endpoint, request: dc.GetDecisionRequest, seconds: float
) -> tuple[dc.DecisionRecord, dict[str, str]]:
    """One decision, and pods by uid. Raises AioRpcError, or Unreachable."""
    async with channel_to(socket) as channel:
        stub = AdmissionStub(channel)
        call = stub.GetDecision(request, timeout=seconds)
        found = (await answer(Service.ADMISSION, socket, call)).decision
        listed = await stub.ListAdmissions(ad.ListAdmissionsRequest(), timeout=seconds)
    return found, names_of(listed, [found])


def names_of(
    listed: ad.ListAdmissionsResponse, decisions: Iterable[dc.DecisionRecord]
) -> dict[str, str]:
    """Names by uid of the pods that are admitted now, and of those that the decisions are about."""
    pods: list[dc.DecisionRecord | pb.AdmissionRecord] = [*decisions, *listed.admissions]
    return {pod.pod_uid: f"{pod.namespace}/{pod.name}" for pod in pods}

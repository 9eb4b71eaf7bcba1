"""A scripted Admission service on a Unix socket."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import grpc
import pytest

from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import types_pb2 as pb
from numalign.v1.node_resources_pb2 import NodeResources

T = TypeVar("T")


class ScriptedAdmission(ad_grpc.AdmissionServicer):
    """Answers as told, and remembers what it was asked."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.fails: Callable[[grpc.ServicerContext], None] | None = None
        self.streams: list[Callable[[grpc.ServicerContext], Iterator[Any]]] = []
        self.decisions: list[ad.AdmitResponse] = []
        self.journal = dc.ListDecisionsResponse()

    def _answer(self, request: object, context: grpc.ServicerContext, response: T) -> T:
        self.requests.append(request)
        if self.fails is not None:
            self.fails(context)
        return response

    def Admit(  # noqa: N802 - the contract's
        self, request: ad.AdmitRequest, context: grpc.ServicerContext
    ) -> ad.AdmitResponse:
        admitted = ad.AdmitResponse(
            verdict=pb.VERDICT_ADMITTED, revision=7, dry_run=request.dry_run
        )
        return self._answer(request, context, self.decisions.pop(0) if self.decisions else admitted)

    def AdmitPods(  # noqa: N802 - the contract's
        self,
        request_iterator: Iterator[ad.AdmitPodsRequest],
        context: grpc.ServicerContext,
    ) -> Iterator[ad.AdmitPodsResponse]:
        for request in request_iterator:
            uid = request.admit.pod.metadata.uid
            if self.fails is not None:
                self.fails(context)
            if not uid:
                code = grpc.StatusCode.INVALID_ARGUMENT.value[0]
                error = ad.StreamError(code=code, message="metadata.uid: Required value")
                yield ad.AdmitPodsResponse(error=error)
                continue
            decision = self._answer(request.admit, context, ad.AdmitResponse(revision=7))
            yield ad.AdmitPodsResponse(pod_uid=uid, decision=decision)

    def SetNode(  # noqa: N802 - the contract's
        self, request: ad.SetNodeRequest, context: grpc.ServicerContext
    ) -> ad.SetNodeResponse:
        return self._answer(request, context, ad.SetNodeResponse())

    def SetNodeState(  # noqa: N802 - the contract's
        self, request: ad.SetNodeStateRequest, context: grpc.ServicerContext
    ) -> ad.SetNodeStateResponse:
        return self._answer(request, context, ad.SetNodeStateResponse())

    def Release(  # noqa: N802 - the contract's
        self, request: ad.ReleaseRequest, context: grpc.ServicerContext
    ) -> ad.ReleaseResponse:
        return self._answer(request, context, ad.ReleaseResponse(revision=8))

    def Reconcile(  # noqa: N802 - the contract's
        self, request: ad.ReconcileRequest, context: grpc.ServicerContext
    ) -> ad.ReconcileResponse:
        return self._answer(request, context, ad.ReconcileResponse(released_pod_uids=["gone"]))

    def PrepareContainer(  # noqa: N802 - the contract's
        self, request: ad.PrepareContainerRequest, context: grpc.ServicerContext
    ) -> ad.PrepareContainerResponse:
        return self._answer(request, context, ad.PrepareContainerResponse(cpus="2-3"))

    def AddContainer(  # noqa: N802 - the contract's
        self, request: ad.AddContainerRequest, context: grpc.ServicerContext
    ) -> ad.AddContainerResponse:
        return self._answer(request, context, ad.AddContainerResponse())

    def RemoveContainer(  # noqa: N802 - the contract's
        self, request: ad.RemoveContainerRequest, context: grpc.ServicerContext
    ) -> ad.RemoveContainerResponse:
        return self._answer(request, context, ad.RemoveContainerResponse())

    def ListAdmissions(  # noqa: N802 - the contract's
        self, request: ad.ListAdmissionsRequest, context: grpc.ServicerContext
    ) -> ad.ListAdmissionsResponse:
        record = pb.AdmissionRecord(pod_uid="u1", owner=request.owner)
        return self._answer(request, context, ad.ListAdmissionsResponse(admissions=[record]))

    def GetNodeResources(  # noqa: N802 - the contract's
        self, request: ad.GetNodeResourcesRequest, context: grpc.ServicerContext
    ) -> ad.GetNodeResourcesResponse:
        resources = NodeResources(revision=9)
        return self._answer(request, context, ad.GetNodeResourcesResponse(resources=resources))

    def PreparePod(  # noqa: N802 - the contract's
        self, request: ad.PreparePodRequest, context: grpc.ServicerContext
    ) -> ad.PreparePodResponse:
        raise NotImplementedError

    def ListDecisions(  # noqa: N802 - the contract's
        self, request: dc.ListDecisionsRequest, context: grpc.ServicerContext
    ) -> dc.ListDecisionsResponse:
        return self._answer(request, context, self.journal)

    def GetDecision(  # noqa: N802 - the contract's
        self, request: dc.GetDecisionRequest, context: grpc.ServicerContext
    ) -> dc.GetDecisionResponse:
        found = self.journal.decisions[0] if self.journal.decisions else dc.DecisionRecord()
        return self._answer(request, context, dc.GetDecisionResponse(decision=found))

    def Simulate(  # noqa: N802 - the contract's
        self, request: ad.SimulateRequest, context: grpc.ServicerContext
    ) -> Iterator[ad.SimulateResponse]:
        self._answer(request, context, None)
        node = ad.SimulatedNode(revision=7, notes=["left out"])
        yield ad.SimulateResponse(node=node)
        for pod in request.pods:
            answer = ad.SimulatedPod(pod_uid=pod.metadata.uid)
            if self.decisions:
                answer.decision.CopyFrom(self.decisions.pop(0))
            else:
                answer.error.code = grpc.StatusCode.INVALID_ARGUMENT.value[0]
                answer.error.message = "spec.containers: Required value"
            yield ad.SimulateResponse(pod=answer)

    def WatchNodeResources(  # noqa: N802 - the contract's
        self, request: ad.WatchNodeResourcesRequest, context: grpc.ServicerContext
    ) -> Iterator[ad.WatchNodeResourcesResponse]:
        raise NotImplementedError

    def WatchAssignments(  # noqa: N802 - the contract's
        self, request: ad.WatchAssignmentsRequest, context: grpc.ServicerContext
    ) -> Iterator[ad.WatchAssignmentsResponse]:
        self.requests.append(request)
        yield from self.streams.pop(0)(context)


class RawAdmit(grpc.GenericRpcHandler):
    """Keeps the bytes of every Admit request."""

    def __init__(self) -> None:
        self.received: list[bytes] = []

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        if details.method != "/numalign.v1.Admission/Admit":
            return None
        return grpc.unary_unary_rpc_method_handler(self._admit)

    def _admit(self, request: bytes, context: object) -> bytes:
        del context
        self.received.append(request)
        return b""


def aborted(
    context: grpc.ServicerContext, code: grpc.StatusCode, message: str
) -> Iterator[ad.WatchAssignmentsResponse]:
    """A stream that ends with a status before its first event."""
    context.abort(code, message)


@pytest.fixture
def admission() -> ScriptedAdmission:
    return ScriptedAdmission()


@pytest.fixture
def socket(tmp_path: Path, admission: ScriptedAdmission) -> Iterator[Path]:
    path = tmp_path / "admission.sock"
    server = grpc.server(ThreadPoolExecutor(4))
    ad_grpc.add_AdmissionServicer_to_server(admission, server)
    server.add_insecure_port(f"unix://{path}")
    server.start()
    yield path
    server.stop(None).wait()


@pytest.fixture
def raw_socket(tmp_path: Path) -> Iterator[tuple[Path, RawAdmit]]:
    path = tmp_path / "raw.sock"
    handler = RawAdmit()
    server = grpc.server(ThreadPoolExecutor(1), handlers=[handler])
    server.add_insecure_port(f"unix://{path}")
    server.start()
    yield path, handler
    server.stop(None).wait()

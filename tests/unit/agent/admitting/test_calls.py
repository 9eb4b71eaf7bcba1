"""The calls to Admission as they go over a socket: owner, Node object, trace, revision."""

# ruff: noqa: N802, ARG002 - names and arguments are the contract's

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode, aio
from tests.unit.agent.made import pod

from numalign.errors import NodeUnknown
from numalign.kube.core.v1 import core_pb2
from numalign.rpc.channel import socket_target
from numalign.rpc.status import status_of, trailing_of
from numalign.telemetry.trace_context import TraceContext, current_trace
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import claims_pb2 as cl
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionServicer, add_AdmissionServicer_to_server
from numalign_agent.admitting.calls import AdmissionCalls, RunningContainer
from numalign_client.errors import ServiceUnavailable


class Service(AdmissionServicer):
    """Writes down what it is asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.metadata: dict[str, str] = {}
        self.node = ""
        self.wants_fresh = False
        self.streams = True

    async def Admit(self, request: ad.AdmitRequest, context: Any) -> ad.AdmitResponse:
        self.asked.append(request)
        self.metadata = dict(context.invocation_metadata())
        if request.needs_node and not self.node:
            error = NodeUnknown("node: no Node object is known")
            code, message = status_of(error)
            context.set_trailing_metadata(trailing_of(error))
            await context.abort(code, message)
        if self.wants_fresh and request.can_read_node and not request.HasField("fresh_node"):
            return ad.AdmitResponse(verdict=pb.VERDICT_DEFERRED, reason="FreshNodeNeeded")
        return ad.AdmitResponse(verdict=pb.VERDICT_ADMITTED, revision=7)

    async def AdmitPods(
        self, request_iterator: AsyncIterator[ad.AdmitPodsRequest], context: Any
    ) -> AsyncIterator[ad.AdmitPodsResponse]:
        if not self.streams:
            self.asked.append("stream")
            await context.abort(StatusCode.UNIMPLEMENTED, "unknown method")
        async for request in request_iterator:
            self.asked.append(request.admit)
            name = request.admit.pod.metadata.name
            if name == "break":
                await context.abort(StatusCode.UNAVAILABLE, "gone")
            answer = ad.AdmitPodsResponse(pod_uid=request.admit.pod.metadata.uid)
            if name == "wrong":
                answer.error.code = StatusCode.INVALID_ARGUMENT.value[0]
            else:
                answer.decision.verdict = pb.VERDICT_ADMITTED
                answer.decision.revision = 20 + len(self.asked)
            if name == "critical":
                answer.decision.verdict = pb.VERDICT_DEFERRED
                answer.decision.victims.add(pod_uid="v")
            if name == "moved":
                answer.decision.reason = "FreshNodeNeeded"
            yield answer

    async def SetNode(self, request: ad.SetNodeRequest, context: Any) -> ad.SetNodeResponse:
        self.node = request.node.metadata.name
        self.asked.append("node")
        return ad.SetNodeResponse()

    async def Release(self, request: ad.ReleaseRequest, context: Any) -> ad.ReleaseResponse:
        self.asked.append(request)
        if request.pod_uid == "unknown":
            await context.abort(StatusCode.NOT_FOUND, "no such pod")
        return ad.ReleaseResponse(revision=3)

    async def Reconcile(self, request: ad.ReconcileRequest, context: Any) -> ad.ReconcileResponse:
        self.asked.append(request)
        return ad.ReconcileResponse(revision=12)

    async def ListAdmissions(
        self, request: ad.ListAdmissionsRequest, context: Any
    ) -> ad.ListAdmissionsResponse:
        self.asked.append(request)
        return ad.ListAdmissionsResponse(revision=2)


class NodeObject:
    def __init__(self, name: str, *, readable: bool = True) -> None:
        self._name = name
        self._readable = readable
        self.reads = 0

    def current(self) -> core_pb2.Node | None:
        return self._made(self._name) if self._name else None

    async def read(self) -> core_pb2.Node | None:
        self.reads += 1
        return self._made("fresh") if self._readable else None

    def _made(self, name: str) -> core_pb2.Node:
        node = core_pb2.Node()
        node.metadata.name = name
        return node


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Service, AdmissionCalls]]:
    directory = Path(tempfile.mkdtemp(prefix="ac"))
    server = aio.server()
    service = Service()  # type: ignore[abstract]
    add_AdmissionServicer_to_server(service, server)
    server.add_insecure_port(socket_target(directory / "a.sock"))
    await server.start()
    calls = AdmissionCalls(directory / "a.sock", "me")
    try:
        yield service, calls
    finally:
        await calls.close()
        await server.stop(None)
        shutil.rmtree(directory)


async def test_an_admission_for_this_owner() -> None:
    async with served() as (service, calls):
        answer = await calls.admit(pod("web"), preempted=("v1", "v2"))

    (request,) = service.asked
    assert answer.verdict == pb.VERDICT_ADMITTED
    assert (request.owner, request.pod.metadata.name) == ("me", "web")
    assert list(request.preempted_pod_uids) == ["v1", "v2"]
    assert not request.needs_node
    assert calls.revision == 7


async def test_pods_in_one_stream() -> None:
    async with served() as (service, calls):
        calls.judge_by(NodeObject("node-a"))
        answers = await calls.admit_together([pod("a"), pod("b")])

    assert [answer.verdict for answer in answers] == [pb.VERDICT_ADMITTED] * 2
    assert [request.pod.metadata.name for request in service.asked] == ["a", "b"]
    for request in service.asked:
        assert request.owner == "me"
        assert request.needs_node
        assert request.can_read_node
        assert request.only_in_order
    assert calls.revision == 22


@pytest.mark.parametrize("name", ["wrong", "break", "critical", "moved"])
async def test_decisions_are_those_before_the_first_that_is_none(name: str) -> None:
    async with served() as (_, calls):
        answers = await calls.admit_together([pod("a"), pod(name), pod("b")])

    assert [answer.revision for answer in answers] == [21]


async def test_a_service_without_streams_is_asked_for_one_once() -> None:
    async with served() as (service, calls):
        service.streams = False
        assert await calls.admit_together([pod("a"), pod("b")]) == []
        assert await calls.admit_together([pod("a"), pod("b")]) == []
        answer = await calls.admit(pod("a"))

    assert ["stream" if asked == "stream" else "admit" for asked in service.asked] == [
        "stream",
        "admit",
    ]
    assert answer.verdict == pb.VERDICT_ADMITTED


async def test_pods_whose_claims_count_are_asked_about_one_by_one() -> None:
    async def read(asked: core_pb2.Pod) -> list[cl.FetchedClaim]:
        raise AssertionError(asked)

    async with served() as (service, calls):
        calls.place_by(read)
        assert await calls.admit_together([pod("a"), pod("b")]) == []

    assert service.asked == []


async def test_a_resize() -> None:
    async with served() as (service, calls):
        await calls.admit(pod("web"), resize=True)

    assert service.asked[0].operation == pb.OPERATION_RESIZE


async def test_the_node_is_told_again_where_admission_does_not_know_it() -> None:
    async with served() as (service, calls):
        calls.judge_by(NodeObject("node-a"))
        await calls.admit(pod("web"))
        await calls.admit(pod("web"))

    kinds = ["node" if asked == "node" else "admit" for asked in service.asked]
    assert kinds == ["admit", "node", "admit", "admit"]
    assert service.node == "node-a"


@pytest.mark.parametrize(("readable", "fresh"), [(True, "fresh"), (False, "")])
async def test_the_node_is_read_anew_where_admission_wants_it(readable: bool, fresh: str) -> None:
    node = NodeObject("node-a", readable=readable)
    async with served() as (service, calls):
        service.node, service.wants_fresh = "node-a", True
        calls.judge_by(node)
        answer = await calls.admit(pod("web"))

    first, second = service.asked
    assert answer.verdict == pb.VERDICT_ADMITTED
    assert (first.can_read_node, second.can_read_node) == (True, False)
    assert second.fresh_node.metadata.name == fresh
    assert node.reads == 1


async def test_an_agent_without_a_node_object_needs_none() -> None:
    async with served() as (service, calls):
        calls.judge_by(NodeObject(""))
        await calls.admit(pod("web"))

    assert not service.asked[0].needs_node
    assert not service.asked[0].can_read_node


async def test_the_trace_goes_along() -> None:
    traceparent = f"00-{'a' * 32}-{'b' * 16}-01"
    async with served() as (service, calls):
        token = current_trace.set(TraceContext(traceparent))
        await calls.admit(pod("web"))
        current_trace.reset(token)

    assert service.metadata["traceparent"] == traceparent


async def test_releasing_what_holds_nothing_is_no_mistake() -> None:
    async with served() as (service, calls):
        await calls.release("unknown")
        await calls.release("web")

    assert [request.pod_uid for request in service.asked] == ["unknown", "web"]
    assert calls.revision == 3


async def test_reconciling_and_beginning_anew() -> None:
    async with served() as (service, calls):
        await calls.reconcile(
            ["a", "b"], [RunningContainer("c1", "a", "main")], as_of=5, sources_ready=True
        )
        assert calls.revision == 12
        await calls.begin_anew()
        assert calls.revision == 2

    request = service.asked[0]
    assert (request.owner, list(request.active_pod_uids)) == ("me", ["a", "b"])
    assert (request.as_of_revision, request.sources_ready) == (5, True)
    assert request.running_containers[0].container_name == "main"
    assert service.asked[1].owner == "me"


async def test_nobody_is_there(tmp_path: Path) -> None:
    calls = AdmissionCalls(tmp_path / "none.sock", "me")
    with pytest.raises(ServiceUnavailable):
        await calls.admissions()
    await calls.close()


async def test_claims_go_along_where_their_devices_count() -> None:
    async def read(asked: core_pb2.Pod) -> list[cl.FetchedClaim]:
        return [cl.FetchedClaim(name=f"of-{asked.metadata.name}", error="secret")]

    async with served() as (service, calls):
        await calls.admit(pod("web"))
        calls.place_by(read)
        await calls.admit(pod("web"))

    assert [[claim.name for claim in request.claims] for request in service.asked] == [
        [],
        ["of-web"],
    ]

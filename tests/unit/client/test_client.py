"""Both clients with typed answers, over a real socket: answers, tries anew, deadlines."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.unit.client.conftest import ScriptedAdmission

import numalign_client
from numalign.kube.core.v1 import core_pb2
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb
from numalign_client import (
    AdmissionError,
    AsyncClient,
    Client,
    DeadlineExceeded,
    Decision,
    InvalidRequest,
    NotAdmitted,
    QueueFull,
    Retry,
    ServiceUnavailable,
    Verdict,
)

Call = Callable[..., Any]
_POD = {"metadata": {"uid": "u1", "name": "p"}, "spec": {"containers": [{"name": "c"}]}}
_NODE = core_pb2.Node(metadata=core_pb2.ObjectMeta(name="n"))
_QUICK = Retry(first=0.001, longest=0.002)
_FRESH = ad.AdmitResponse(verdict=pb.VERDICT_DEFERRED, reason="FreshNodeNeeded")
_AFFINITY = ad.AdmitResponse(verdict=pb.VERDICT_REJECTED, reason="NodeAffinity")


def _blocking(socket: Path, method: str, *args: Any, **options: Any) -> Any:
    with Client(socket, retry=_QUICK) as client:
        return getattr(client, method)(*args, **options)


def _with_asyncio(socket: Path, method: str, *args: Any, **options: Any) -> Any:
    read_node: Callable[[], Any] = options.get("read_node", lambda: None)

    async def reading() -> Any:
        return read_node()

    async def run() -> Any:
        if "read_node" in options:
            options["read_node"] = reading
        async with AsyncClient(socket, retry=_QUICK) as client:
            return await getattr(client, method)(*args, **options)

    return asyncio.run(run())


@pytest.fixture(params=[_blocking, _with_asyncio], ids=["blocking", "asyncio"])
def call(request: pytest.FixtureRequest, socket: Path) -> Call:
    return lambda method, *args, **options: request.param(socket, method, *args, **options)


def _failing(
    admission: ScriptedAdmission, codes: Iterable[grpc.StatusCode]
) -> Callable[[grpc.ServicerContext], None]:
    left = list(codes)

    def fail(context: grpc.ServicerContext) -> None:
        if left:
            context.abort(left.pop(0), "not now")

    admission.fails = fail
    return fail


def test_a_decision(call: Call, admission: ScriptedAdmission) -> None:
    decision = call("admit", _POD, dry_run=True, explain="full", owner="me", resize=True)

    assert decision == Decision(verdict=Verdict.ADMITTED, pod_uid="u1", revision=7, dry_run=True)
    assert decision.admitted
    (request,) = admission.requests
    assert (request.dry_run, request.owner) == (True, "me")
    assert request.operation == pb.OPERATION_RESIZE
    assert request.explain == pb.EXPLAIN_LEVEL_FULL
    assert request.pod.spec.restart_policy == "Always"


def test_others_and_victims_are_told(call: Call, admission: ScriptedAdmission) -> None:
    others = [_POD | {"metadata": {"name": "o"}}]
    call("admit", _POD, other_pods=others, preempted_pod_uids=["v"], needs_node=True)

    (request,) = admission.requests
    assert request.needs_node
    assert [other.metadata.name for other in request.other_pods] == ["o"]
    assert list(request.preempted_pod_uids) == ["v"]


def test_a_pod_without_a_uid_gets_one_and_says_so(call: Call) -> None:
    nameless = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c"}]}}
    first, second = call("admit", nameless), call("admit", nameless)

    assert first.uid_invented
    assert len(first.pod_uid) == 36
    assert first.pod_uid == second.pod_uid


@pytest.mark.parametrize(
    ("pod", "options", "error", "message"),
    [
        pytest.param("text", {}, InvalidRequest, "must be an object; a pod as text", id="text"),
        pytest.param(7, {}, TypeError, "a pod must be a message, a mapping", id="number"),
        pytest.param({}, {}, InvalidRequest, "metadata.name: Required", id="empty"),
        pytest.param(
            _POD,
            {"explain": "bogus"},
            ValueError,
            "explain must be one of none, summary, full, not 'bogus'",
            id="level",
        ),
        pytest.param(_POD, {"timeout": 0}, ValueError, "timeout must be more than 0", id="time"),
        pytest.param(
            _POD, {"timeout": math.nan}, ValueError, "timeout must be more than 0", id="no number"
        ),
    ],
)
def test_what_makes_no_sense_is_not_sent(
    call: Call,
    admission: ScriptedAdmission,
    pod: Any,
    options: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        call("admit", pod, **options)

    assert admission.requests == []


def test_unavailable_is_tried_again(call: Call, admission: ScriptedAdmission) -> None:
    _failing(admission, [grpc.StatusCode.UNAVAILABLE] * 3)

    assert call("admit", _POD).admitted
    assert len(admission.requests) == 4


@pytest.mark.parametrize(
    ("code", "error"),
    [
        pytest.param(grpc.StatusCode.RESOURCE_EXHAUSTED, QueueFull, id="queue"),
        pytest.param(grpc.StatusCode.INTERNAL, AdmissionError, id="fault"),
        pytest.param(grpc.StatusCode.INVALID_ARGUMENT, InvalidRequest, id="invalid"),
    ],
)
def test_nothing_else_is(
    call: Call, admission: ScriptedAdmission, code: grpc.StatusCode, error: type[Exception]
) -> None:
    _failing(admission, [code])

    with pytest.raises(error, match="not now"):
        call("admit", _POD)
    assert len(admission.requests) == 1


def test_a_request_that_is_too_large_is_not_a_full_queue(call: Call) -> None:
    metadata = {"uid": "u1", "name": "p", "annotations": {"big": "x" * (5 << 20)}}

    with pytest.raises(InvalidRequest, match=r"has \d+ bytes, and a service takes 4194304"):
        call("admit", {**_POD, "metadata": metadata})


def test_tries_end_with_the_deadline(call: Call, admission: ScriptedAdmission) -> None:
    _failing(admission, [grpc.StatusCode.UNAVAILABLE] * 10_000)

    for seconds in (0.1, 1, 10):
        admission.requests.clear()
        with pytest.raises((ServiceUnavailable, DeadlineExceeded)):
            call("admit", _POD, timeout=seconds)
        # How many fit in depends on the machine.
        if len(admission.requests) > 2:
            break
    assert len(admission.requests) > 2


def test_nobody_listens(tmp_path: Path) -> None:
    with Client(tmp_path / "no.sock", timeout=2) as client, pytest.raises(ServiceUnavailable):
        client.admit(_POD)


def test_no_time_at_all_is_refused_at_once(socket: Path) -> None:
    with pytest.raises(ValueError, match="timeout must be more than 0 seconds, not -1"):
        Client(socket, timeout=-1)


@pytest.mark.parametrize("code", [grpc.StatusCode.NOT_FOUND])
def test_release_of_a_pod_that_is_not_there(
    call: Call, admission: ScriptedAdmission, code: grpc.StatusCode
) -> None:
    _failing(admission, [code, code])

    with pytest.raises(NotAdmitted):
        call("release", "u1")
    call("release", "u1", missing_ok=True)


def test_release_whose_answer_was_lost(call: Call, admission: ScriptedAdmission) -> None:
    """An earlier try may have released it: then it is not there any more, as was asked."""
    _failing(admission, [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.NOT_FOUND])

    call("release", "u1")

    assert len(admission.requests) == 2


def test_the_node_is_read_anew_when_it_is_needed(call: Call, admission: ScriptedAdmission) -> None:
    """PRED-10."""
    admission.decisions = [_FRESH]
    decision = call("admit", _POD, read_node=lambda: _NODE)

    assert decision.admitted
    first, second = admission.requests
    assert (first.can_read_node, first.HasField("fresh_node")) == (True, False)
    assert (second.can_read_node, second.fresh_node) == (False, _NODE)


def test_the_first_look_stands_where_the_node_cannot_be_read(
    call: Call, admission: ScriptedAdmission
) -> None:
    """PRED-10."""
    admission.decisions = [_FRESH, _AFFINITY]

    def read_node() -> core_pb2.Node:
        raise OSError("the API server is away")

    decision = call("admit", _POD, read_node=read_node)

    assert decision.verdict is Verdict.REJECTED
    assert decision.warnings == ("the Node object could not be read anew: the API server is away",)
    assert not admission.requests[1].can_read_node


def test_the_other_calls(call: Call, admission: ScriptedAdmission) -> None:
    listed = call("admissions", owner="me")
    reconciled = call("reconcile", ["u1"], as_of_revision=3, sources_ready=True)
    prepared = call("prepare_container", "u1", "c")
    call("add_container", "u1", "c", "id")
    call("remove_container", "id")
    call("set_node", {"metadata": {"name": "n"}})
    call("set_node_state", shutting_down=True)
    resources = call("node_resources")

    assert [(pod.pod_uid, pod.owner) for pod in listed.pods] == [("u1", "me")]
    assert reconciled.released == ("gone",)
    assert prepared.cpus == "2-3"
    assert resources.revision == 9
    assert [type(request).__name__ for request in admission.requests[2:7]] == [
        "PrepareContainerRequest",
        "AddContainerRequest",
        "RemoveContainerRequest",
        "SetNodeRequest",
        "SetNodeStateRequest",
    ]
    assert admission.requests[5].node == _NODE
    assert admission.requests[6].shutting_down


def _events(context: grpc.ServicerContext) -> Iterator[ad.WatchAssignmentsResponse]:
    record = pb.AdmissionRecord(pod_uid="u1", name="p")
    yield ad.WatchAssignmentsResponse(existing=record, revision=1)
    yield ad.WatchAssignmentsResponse(synced=ad.Synced(), revision=1)
    yield ad.WatchAssignmentsResponse(revision=2)
    yield ad.WatchAssignmentsResponse(changed=record, revision=3)
    yield ad.WatchAssignmentsResponse(shared_cpus=ad.SharedCpus(cpus="0-1"), revision=4)
    yield ad.WatchAssignmentsResponse(unhealthy_devices=pb.UnhealthyDevices(), revision=4)
    yield ad.WatchAssignmentsResponse(released=ad.Released(pod_uid="u1"), revision=5)
    context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the end of the test")


_SEEN = [
    ("Existing", 1),
    ("Synced", 1),
    ("Changed", 3),
    ("SharedCpus", 4),
    ("UnhealthyDevices", 4),
    ("Released", 5),
]


def test_a_watch(socket: Path, admission: ScriptedAdmission) -> None:
    admission.streams = [_events]
    with Client(socket) as client:
        watch = client.watch()
        seen = [next(watch) for _ in _SEEN]
        with pytest.raises(InvalidRequest):
            next(watch)

    assert [(type(event).__name__, event.revision) for event in seen] == _SEEN


async def test_a_watch_with_asyncio(socket: Path, admission: ScriptedAdmission) -> None:
    admission.streams = [_events]
    async with AsyncClient(socket) as client:
        watch = client.watch()
        seen = [await anext(watch) for _ in _SEEN]
        with pytest.raises(InvalidRequest):
            await anext(watch)

    assert [(type(event).__name__, event.revision) for event in seen] == _SEEN


def test_the_environment_names_the_socket(
    socket: Path, admission: ScriptedAdmission, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMALIGN_SOCKET", f"unix://{socket}")
    with Client() as client:
        assert client.admit(_POD).admitted

    assert len(admission.requests) == 1


def test_every_name_is_there() -> None:
    assert sorted(numalign_client._MODULE_OF) == sorted(numalign_client.__all__)
    for name in numalign_client.__all__:
        assert getattr(numalign_client, name) is not None
    assert set(numalign_client.__all__) <= set(dir(numalign_client))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        numalign_client.__getattr__("Nothing")

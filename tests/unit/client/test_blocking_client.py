"""The blocking client over a real socket."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, PreconditionFailure
from google.rpc.status_pb2 import Status
from tests.unit.client.conftest import ScriptedAdmission, aborted

from numalign.kube.core.v1 import core_pb2
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb
from numalign_client import (
    AdmissionClient,
    AdmissionError,
    AlreadyRegistered,
    DeadlineExceeded,
    HistoryGone,
    InvalidRequest,
    NotAdmitted,
    PreconditionFailed,
    QueueFull,
    ServiceUnavailable,
    UnsupportedRequest,
    Violation,
)

POD = core_pb2.Pod(
    metadata=core_pb2.ObjectMeta(uid="u1", name="p"),
    spec=core_pb2.PodSpec(containers=[core_pb2.Container(name="c")]),
)
POD_JSON = {
    "metadata": {"uid": "u1", "name": "p"},
    "spec": {"containers": [{"name": "c"}]},
}


@pytest.fixture
def client(socket: Path) -> Iterator[AdmissionClient]:
    with AdmissionClient(socket) as client:
        yield client


def abort(
    code: grpc.StatusCode, details: Message | None = None
) -> Callable[[grpc.ServicerContext], None]:
    def fail(context: grpc.ServicerContext) -> None:
        if details is not None:
            packed = AnyMessage()
            packed.Pack(details)
            status = Status(code=code.value[0], message="no", details=[packed])
            context.set_trailing_metadata(
                (("grpc-status-details-bin", status.SerializeToString()),)
            )
        context.abort(code, "no")

    return fail


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(POD, id="message"),
        pytest.param(POD_JSON, id="mapping"),
        pytest.param(POD.SerializeToString(), id="bytes"),
    ],
)
def test_admit_sends_the_pod_and_what_is_asked(
    client: AdmissionClient, admission: ScriptedAdmission, pod: Any
) -> None:
    answer = client.admit(pod, dry_run=True, explain="full", owner="agent", timeout=60)

    assert answer.verdict == pb.VERDICT_ADMITTED
    assert answer.dry_run
    assert admission.requests == [
        ad.AdmitRequest(
            pod=POD,
            operation=pb.OPERATION_ADD,
            owner="agent",
            dry_run=True,
            explain=pb.EXPLAIN_LEVEL_FULL,
        )
    ]


def test_admit_sends_the_bytes_of_a_pod_as_they_are(raw_socket: Any) -> None:
    path, handler = raw_socket
    # Fields out of order and one that nobody knows: a parser would write them anew.
    spec = b"\x12\x05" + b"\x12\x03\x0a\x01c"
    metadata = b"\x0a\x07" + b"\x2a\x02u1" + b"\x0a\x01p"
    data = spec + metadata + b"\x9a\x06" + b"\xac\x02" + b"x" * 300
    with AdmissionClient(path) as client:
        client.admit(data, timeout=60)

    assert data in handler.received[0]
    parsed = ad.AdmitRequest.FromString(handler.received[0])
    assert parsed.pod.metadata.uid == "u1"
    assert parsed.pod.spec.containers[0].name == "c"


def test_a_resize_is_asked_as_one(client: AdmissionClient, admission: ScriptedAdmission) -> None:
    client.admit(POD, resize=True, timeout=60)

    assert admission.requests[0].operation == pb.OPERATION_RESIZE


def test_other_calls(client: AdmissionClient, admission: ScriptedAdmission) -> None:
    running = pb.RunningContainer(container_id="i", pod_uid="u1", container_name="c")

    assert client.release("u1", timeout=60) == 8
    reconciled = client.reconcile(
        ["u1"],
        owner="agent",
        running_containers=[running],
        as_of_revision=5,
        sources_ready=True,
        timeout=60,
    )
    assert list(reconciled.released_pod_uids) == ["gone"]
    assert client.prepare_container("u1", "c", timeout=60).cpus == "2-3"
    client.add_container("u1", "c", "i", timeout=60)
    client.remove_container("i", timeout=60)
    assert client.list_admissions(owner="agent", timeout=60).admissions[0].pod_uid == "u1"
    assert client.get_node_resources(timeout=60).revision == 9
    assert admission.requests == [
        ad.ReleaseRequest(pod_uid="u1"),
        ad.ReconcileRequest(
            owner="agent",
            active_pod_uids=["u1"],
            running_containers=[running],
            as_of_revision=5,
            sources_ready=True,
        ),
        ad.PrepareContainerRequest(pod_uid="u1", container_name="c"),
        ad.AddContainerRequest(pod_uid="u1", container_name="c", container_id="i"),
        ad.RemoveContainerRequest(container_id="i"),
        ad.ListAdmissionsRequest(owner="agent"),
        ad.GetNodeResourcesRequest(),
    ]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        pytest.param(grpc.StatusCode.INVALID_ARGUMENT, InvalidRequest, id="invalid"),
        pytest.param(grpc.StatusCode.FAILED_PRECONDITION, PreconditionFailed, id="changed"),
        pytest.param(grpc.StatusCode.NOT_FOUND, NotAdmitted, id="not-admitted"),
        pytest.param(grpc.StatusCode.ALREADY_EXISTS, AlreadyRegistered, id="registered"),
        pytest.param(grpc.StatusCode.RESOURCE_EXHAUSTED, QueueFull, id="queue-full"),
        pytest.param(grpc.StatusCode.OUT_OF_RANGE, HistoryGone, id="history"),
        pytest.param(grpc.StatusCode.UNAVAILABLE, ServiceUnavailable, id="unavailable"),
        pytest.param(grpc.StatusCode.UNIMPLEMENTED, UnsupportedRequest, id="unsupported"),
        pytest.param(grpc.StatusCode.INTERNAL, AdmissionError, id="other"),
    ],
)
def test_every_status_has_its_exception(
    client: AdmissionClient, admission: ScriptedAdmission, code: Any, kind: Any
) -> None:
    admission.fails = abort(code)

    with pytest.raises(AdmissionError) as caught:
        client.release("u1", timeout=60)

    assert type(caught.value) is kind
    assert caught.value.code is code
    assert str(caught.value) == "no"
    assert caught.value.violations == ()


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        pytest.param(
            BadRequest(
                field_violations=[
                    BadRequest.FieldViolation(field="metadata.uid", description="Required value"),
                    BadRequest.FieldViolation(field="spec", description="odd"),
                ]
            ),
            (Violation("metadata.uid", "Required value"), Violation("spec", "odd")),
            id="bad-request",
        ),
        pytest.param(
            PreconditionFailure(
                violations=[PreconditionFailure.Violation(subject="spec.x", description="changed")]
            ),
            (Violation("spec.x", "changed"),),
            id="precondition",
        ),
        pytest.param(Status(message="another type"), (), id="unknown-details"),
    ],
)
def test_details_name_fields(
    client: AdmissionClient, admission: ScriptedAdmission, details: Any, expected: Any
) -> None:
    admission.fails = abort(grpc.StatusCode.INVALID_ARGUMENT, details)

    with pytest.raises(InvalidRequest) as caught:
        client.admit(POD, timeout=60)

    assert caught.value.violations == expected


def test_details_that_cannot_be_read_name_nothing(
    client: AdmissionClient, admission: ScriptedAdmission
) -> None:
    def fail(context: grpc.ServicerContext) -> None:
        context.set_trailing_metadata((("grpc-status-details-bin", b"\xff"),))
        context.abort(grpc.StatusCode.NOT_FOUND, "gone")

    admission.fails = fail

    with pytest.raises(NotAdmitted, match="gone") as caught:
        client.release("u1", timeout=60)

    assert caught.value.violations == ()


def test_a_mapping_that_is_no_pod_is_refused_before_it_is_sent(
    client: AdmissionClient, admission: ScriptedAdmission
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        client.admit({"spec": {"containers": "none"}})

    assert caught.value.violations[0].field == "spec.containers"
    assert admission.requests == []


def test_a_timeout_is_the_deadline(client: AdmissionClient, admission: ScriptedAdmission) -> None:
    ended = threading.Event()

    def wait(_: grpc.ServicerContext) -> None:
        ended.wait(60)

    admission.fails = wait
    with pytest.raises(DeadlineExceeded):
        client.release("u1", timeout=0.05)
    ended.set()


def test_nobody_listens(tmp_path: Path) -> None:
    with AdmissionClient(tmp_path / "none.sock") as client, pytest.raises(ServiceUnavailable):
        client.release("u1", timeout=60)


def existing(uid: str, revision: int = 1) -> ad.WatchAssignmentsResponse:
    return ad.WatchAssignmentsResponse(existing=pb.AdmissionRecord(pod_uid=uid), revision=revision)


def synced(revision: int) -> ad.WatchAssignmentsResponse:
    return ad.WatchAssignmentsResponse(synced=ad.Synced(), revision=revision)


def changed(uid: str, revision: int) -> ad.WatchAssignmentsResponse:
    return ad.WatchAssignmentsResponse(changed=pb.AdmissionRecord(pod_uid=uid), revision=revision)


def test_a_watch_resumes_and_begins_anew(
    client: AdmissionClient, admission: ScriptedAdmission
) -> None:
    def first(context: grpc.ServicerContext) -> Iterator[ad.WatchAssignmentsResponse]:
        yield existing("u1")
        yield synced(4)
        yield changed("u2", 5)
        context.abort(grpc.StatusCode.UNAVAILABLE, "restarting")

    def second(context: grpc.ServicerContext) -> Iterator[ad.WatchAssignmentsResponse]:
        yield from aborted(context, grpc.StatusCode.OUT_OF_RANGE, "too old")

    def third(context: grpc.ServicerContext) -> Iterator[ad.WatchAssignmentsResponse]:
        yield existing("u2", 9)
        yield synced(9)

    admission.streams = [first, second, third]
    waits: list[float] = []
    events = client.watch_assignments(sleep=waits.append)
    seen = [next(events) for _ in range(6)]
    events.close()

    assert seen == [
        existing("u1"),
        synced(4),
        changed("u2", 5),
        existing("u2", 9),
        ad.WatchAssignmentsResponse(released=ad.Released(pod_uid="u1"), revision=9),
        synced(9),
    ]
    assert [request.from_revision for request in admission.requests] == [0, 5, 0]
    assert waits == [0.1, 0.2]

"""Errors to statuses and back."""

from __future__ import annotations

import pytest
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode, aio

from numalign import errors
from numalign.errors import FieldViolation, InvalidInput, SpecChanged
from numalign.rpc.status import (
    STATUS_DETAILS,
    is_expected,
    status_of,
    trailing_of,
    violations_of,
    wants_a_human,
)


def rpc_error(
    code: StatusCode = StatusCode.INVALID_ARGUMENT,
    details: str | None = "no",
    trailing: tuple[tuple[str, str | bytes], ...] = (),
) -> aio.AioRpcError:
    return aio.AioRpcError(code, aio.Metadata(), aio.Metadata(*trailing), details)


@pytest.mark.parametrize(
    ("error", "code", "message", "expected"),
    [
        pytest.param(
            InvalidInput(FieldViolation("a.b", "Required value"), FieldViolation("c", "bad")),
            StatusCode.INVALID_ARGUMENT,
            "a.b: Required value; c: bad",
            True,
            id="InvalidInput",
        ),
        pytest.param(
            SpecChanged("spec.containers", "changed"),
            StatusCode.FAILED_PRECONDITION,
            "changed",
            True,
            id="SpecChanged",
        ),
        pytest.param(
            errors.NodeUnknown("x"), StatusCode.FAILED_PRECONDITION, "x", True, id="NodeUnknown"
        ),
        pytest.param(errors.NotFound("x"), StatusCode.NOT_FOUND, "x", True, id="NotFound"),
        pytest.param(
            errors.AlreadyExists("x"), StatusCode.ALREADY_EXISTS, "x", True, id="AlreadyExists"
        ),
        pytest.param(errors.Unavailable("x"), StatusCode.UNAVAILABLE, "x", True, id="Unavailable"),
        pytest.param(
            errors.QueueFull("x"), StatusCode.RESOURCE_EXHAUSTED, "x", True, id="QueueFull"
        ),
        pytest.param(
            errors.RevisionTooOld("x"), StatusCode.OUT_OF_RANGE, "x", True, id="RevisionTooOld"
        ),
        pytest.param(
            errors.ConfigError("x"), StatusCode.FAILED_PRECONDITION, "x", True, id="ConfigError"
        ),
        pytest.param(
            errors.StateNotWritten("/a.db", "x"), StatusCode.UNAVAILABLE, "x", True, id="disk-full"
        ),
        pytest.param(errors.StateError("x"), StatusCode.INTERNAL, "x", False, id="StateError"),
        pytest.param(
            errors.StartError("cpu", "x"), StatusCode.INTERNAL, "x", False, id="StartError"
        ),
        pytest.param(
            TimeoutError(), StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded", True, id="deadline"
        ),
        pytest.param(
            TimeoutError(110, "Connection timed out"),
            StatusCode.INTERNAL,
            "internal error: TimeoutError: [Errno 110] Connection timed out",
            False,
            id="timeout-of-the-system",
        ),
        pytest.param(
            KeyError("x"), StatusCode.INTERNAL, "internal error: KeyError: 'x'", False, id="bug"
        ),
        pytest.param(
            rpc_error(StatusCode.ABORTED, None), StatusCode.ABORTED, "", True, id="from-elsewhere"
        ),
    ],
)
def test_status_of(error: Exception, code: StatusCode, message: str, expected: bool) -> None:
    assert status_of(error) == (code, message)
    assert is_expected(error) is expected


def test_subclasses_take_their_base_classes_code() -> None:
    class ProviderDown(errors.Unavailable):
        pass

    assert status_of(ProviderDown("x")) == (StatusCode.UNAVAILABLE, "x")


def test_violations_come_back() -> None:
    error = InvalidInput(FieldViolation("a.b", "Required value"), FieldViolation("c", "bad"))
    failed = rpc_error(trailing=trailing_of(error))
    assert violations_of(failed) == error.violations


def test_the_status_is_whole() -> None:
    ((key, value),) = trailing_of(InvalidInput(FieldViolation("a", "b")))
    assert isinstance(value, bytes)
    status = status_pb2.Status.FromString(value)
    assert key == STATUS_DETAILS
    assert (status.code, status.message) == (3, "a: b")


def test_spec_changed_names_the_field() -> None:
    ((_, value),) = trailing_of(SpecChanged("spec.containers", "changed"))
    assert isinstance(value, bytes)
    failure = error_details_pb2.PreconditionFailure()
    assert status_pb2.Status.FromString(value).details[0].Unpack(failure)
    assert failure.violations[0].type == "SPEC_CHANGED"
    assert failure.violations[0].subject == "spec.containers"


@pytest.mark.parametrize("hops", [0, 1, 2])
def test_a_state_that_is_not_written_names_its_file_over_every_hop(hops: int) -> None:
    error: Exception = errors.StateNotWritten("/var/cpu.db", "disk full")
    assert wants_a_human(error)
    for _ in range(hops):
        code, text = status_of(error)
        failed = rpc_error(code, text, trailing_of(error))
        error = errors.Unavailable(f"hint provider cpu: {text}")
        error.__cause__ = failed
        assert not wants_a_human(error)
    ((_, value),) = trailing_of(error)
    assert isinstance(value, bytes)
    info = error_details_pb2.ErrorInfo()
    assert status_pb2.Status.FromString(value).details[0].Unpack(info)
    assert (info.reason, info.domain) == ("STATE_NOT_WRITTEN", "numalign")
    assert info.metadata == {"file": "/var/cpu.db"}


def test_details_of_another_service_are_passed_on() -> None:
    trailing = trailing_of(InvalidInput(FieldViolation("a", "b")))
    assert trailing_of(rpc_error(trailing=(("other", "x"), *trailing))) == trailing
    assert trailing_of(rpc_error()) == ()


@pytest.mark.parametrize(
    "trailing",
    [
        pytest.param((), id="none"),
        pytest.param(((STATUS_DETAILS, b"\xff\xff"),), id="unreadable"),
        pytest.param(((STATUS_DETAILS, b""),), id="empty"),
    ],
)
def test_without_details_the_request_as_a_whole_is_wrong(
    trailing: tuple[tuple[str, str | bytes], ...],
) -> None:
    assert violations_of(rpc_error(trailing=trailing)) == (FieldViolation("", "no"),)
    nameless = rpc_error(details=None, trailing=trailing)
    assert violations_of(nameless) == (FieldViolation("", "INVALID_ARGUMENT"),)


def test_an_answer_stays_within_grpcs_metadata() -> None:
    many = InvalidInput(*(FieldViolation(f"f[{n}]", "é" * 5000) for n in range(2000)))
    _, message = status_of(many)
    trailing = trailing_of(many)
    size = len(message.encode()) + sum(len(k) + len(v) for k, v in trailing)

    # gRPC percent-encodes the message: up to three bytes for one.
    assert len(message.encode()) * 3 + size <= 16 * 1024
    assert message.endswith("...")
    assert violations_of(rpc_error(trailing=trailing))[0].field == "f[0]"

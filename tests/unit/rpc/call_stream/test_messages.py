"""What travels on a stream of calls comes out as it went in."""

from __future__ import annotations

import pytest
from grpc import StatusCode

from numalign.rpc.call_stream.messages import (
    answer_message,
    call_message,
    code_of,
    failure_message,
    give_up_message,
    metadata_of,
    ready_message,
    timeout_of,
)
from numalign.v1 import call_stream_pb2 as cs

METADATA = (("traceparent", "00-a-b-01"), ("grpc-status-details-bin", b"\xff\x00"), ("k", "1"))


@pytest.mark.parametrize(
    ("timeout", "read"),
    [(None, None), (0.0, 0.0), (1.5, 1.5), (0.000001, 0.000001), (-1.0, 0.0), (9e5, 9e5)],
    ids=["none", "zero", "seconds", "micro", "past", "long"],
)
def test_timeout(timeout: float | None, read: float | None) -> None:
    message = cs.CarryRequest.FromString(call_message(1, "/a/B", b"r", timeout, ()))
    assert timeout_of(message) == read


def test_call() -> None:
    message = cs.CarryRequest.FromString(call_message(3, "/a/B", b"r", None, METADATA))
    assert (message.id, message.method, message.request) == (3, "/a/B", b"r")
    assert metadata_of(message.metadata) == METADATA


def test_given_up() -> None:
    assert cs.CarryRequest.FromString(give_up_message(3)) == cs.CarryRequest(id=3)


def test_ready() -> None:
    assert cs.CarryResponse.FromString(ready_message()).id == 0


def test_answer() -> None:
    message = cs.CarryResponse.FromString(answer_message(3, b"", METADATA))
    assert not message.HasField("failure")
    assert metadata_of(message.trailing) == METADATA


@pytest.mark.parametrize("code", list(StatusCode), ids=lambda code: code.name)
def test_failure(code: StatusCode) -> None:
    message = cs.CarryResponse.FromString(failure_message(3, code, "why", METADATA))
    assert (code_of(message.failure), message.failure.message) == (code, "why")
    assert metadata_of(message.trailing) == METADATA


def test_a_code_that_gRPC_does_not_know() -> None:  # noqa: N802
    assert code_of(cs.CallFailure(code=99)) is StatusCode.UNKNOWN


def test_text_that_is_none_is_an_error() -> None:
    with pytest.raises(UnicodeDecodeError):
        metadata_of([cs.CallMetadata(key="k", value=b"\xff")])

"""What travels on a stream of calls, as bytes and back.

Separate from both sides, which must read each other's metadata and statuses alike.
"""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.duration_pb2 import Duration
from grpc import StatusCode

from numalign.v1 import call_stream_pb2 as cs

PATH = "/numalign.v1.CallStream/Carry"
"""The stream itself, as a method."""

Metadata = tuple[tuple[str, str | bytes], ...]

_BINARY = "-bin"
_NANOS = 1_000_000_000
_CODES = {code.value[0]: code for code in StatusCode}


def call_message(
    number: int,
    method: str,
    request: bytes,
    timeout: float | None,
    metadata: Iterable[tuple[str, str | bytes]],
) -> bytes:
    """A call that begins."""
    message = cs.CarryRequest(id=number, method=method, request=request)
    if timeout is not None:
        nanos = max(0, round(timeout * _NANOS))
        message.timeout.CopyFrom(Duration(seconds=nanos // _NANOS, nanos=nanos % _NANOS))
    for key, value in metadata:
        message.metadata.add(key=key, value=value.encode() if isinstance(value, str) else value)
    return message.SerializeToString()


def give_up_message(number: int) -> bytes:
    """A call that is given up."""
    return cs.CarryRequest(id=number).SerializeToString()


def timeout_of(message: cs.CarryRequest) -> float | None:
    """The seconds that a call has left; None: as long as it takes."""
    if not message.HasField("timeout"):
        return None
    return message.timeout.seconds + message.timeout.nanos / _NANOS


def ready_message() -> bytes:
    """The server carries calls from now on."""
    return cs.CarryResponse().SerializeToString()


def answer_message(
    number: int, response: bytes, trailing: Iterable[tuple[str, str | bytes]]
) -> bytes:
    """A call that succeeded."""
    message = cs.CarryResponse(id=number, response=response)
    _add_trailing(message, trailing)
    return message.SerializeToString()


def failure_message(
    number: int,
    code: StatusCode,
    text: str,
    trailing: Iterable[tuple[str, str | bytes]] = (),
) -> bytes:
    """A call that failed."""
    failure = cs.CallFailure(code=code.value[0], message=text)
    message = cs.CarryResponse(id=number, failure=failure)
    _add_trailing(message, trailing)
    return message.SerializeToString()


def code_of(failure: cs.CallFailure) -> StatusCode:
    """The status code; one that gRPC does not know is UNKNOWN to it as well."""
    return _CODES.get(failure.code, StatusCode.UNKNOWN)


def metadata_of(entries: Iterable[cs.CallMetadata]) -> Metadata:
    """Metadata as gRPC gives it out: text, and bytes under keys that end in `-bin`.

    Raises UnicodeDecodeError for text that is none.
    """
    return tuple(
        (entry.key, entry.value if entry.key.endswith(_BINARY) else entry.value.decode())
        for entry in entries
    )


def _add_trailing(message: cs.CarryResponse, trailing: Iterable[tuple[str, str | bytes]]) -> None:
    for key, value in trailing:
        message.trailing.add(key=key, value=value.encode() if isinstance(value, str) else value)

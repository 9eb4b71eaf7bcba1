"""The exception tree of the clients: one exception for each way in which no decision was made.

A rejection is no exception: it is an answer. All of these say that nothing was kept.

    AdmissionError
     ├── InvalidRequest        a field of the request is wrong           INVALID_ARGUMENT
     ├── PreconditionFailed    admitted before, with another spec        FAILED_PRECONDITION
     ├── NotAdmitted           the pod or container is not known         NOT_FOUND
     ├── AlreadyRegistered     a provider's name or resource is taken    ALREADY_EXISTS
     ├── QueueFull             too many admissions are waiting           RESOURCE_EXHAUSTED
     ├── HistoryGone           a watch starts before the history         OUT_OF_RANGE
     ├── ServiceUnavailable    numalign, or a provider, is down          UNAVAILABLE
     ├── DeadlineExceeded      no answer in time                         DEADLINE_EXCEEDED
     ├── CallCancelled         the caller gave up                        CANCELLED
     └── UnsupportedRequest    this version cannot do it                 UNIMPLEMENTED
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, cast

from google.protobuf.message import DecodeError
from grpc import RpcError, StatusCode

_DETAILS_KEY = "grpc-status-details-bin"


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing wrong with a request: a path such as `spec.containers[0].name`, and why."""

    field: str
    description: str


class AdmissionError(Exception):
    """No decision was made. `code` is the gRPC status; `violations` name fields, if any."""

    def __init__(
        self, code: StatusCode, message: str, violations: tuple[Violation, ...] = ()
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.violations = violations


class InvalidRequest(AdmissionError):
    """The request cannot be understood; `violations` name every field found wrong."""


class PreconditionFailed(AdmissionError):
    """The pod is admitted with another spec, or for another owner."""


class NotAdmitted(AdmissionError):
    """The pod or container is not known."""


class AlreadyRegistered(AdmissionError):
    """The name or a resource of a hint provider belongs to another one."""


class QueueFull(AdmissionError):
    """Too many admissions are waiting; ask again later."""


class HistoryGone(AdmissionError):
    """The history that a watch asks for is no longer kept; start again from 0."""


class ServiceUnavailable(AdmissionError):
    """numalign, or a hint provider that it needs, is down."""


class DeadlineExceeded(AdmissionError):
    """There was no answer in time."""


class CallCancelled(AdmissionError):
    """The caller gave up, or closed the client."""


class UnsupportedRequest(AdmissionError):
    """The service does not know the call, or this version cannot do what is asked."""


_TOO_LARGE = re.compile(r"(?:SERVER: Received|Sent) message larger than max \((\d+) vs\. (\d+)\)")
"""How gRPC refuses a request before a service sees it."""

_CLASSES: Mapping[StatusCode, type[AdmissionError]] = {
    StatusCode.INVALID_ARGUMENT: InvalidRequest,
    StatusCode.FAILED_PRECONDITION: PreconditionFailed,
    StatusCode.NOT_FOUND: NotAdmitted,
    StatusCode.ALREADY_EXISTS: AlreadyRegistered,
    StatusCode.RESOURCE_EXHAUSTED: QueueFull,
    StatusCode.OUT_OF_RANGE: HistoryGone,
    StatusCode.UNAVAILABLE: ServiceUnavailable,
    StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    StatusCode.CANCELLED: CallCancelled,
    StatusCode.UNIMPLEMENTED: UnsupportedRequest,
}


class FailedCall(Protocol):
    """A failed call as both kinds of channel report it: grpc.Call and aio.AioRpcError."""

    def code(self) -> StatusCode:
        """The status."""

    def details(self) -> str | None:
        """The message."""

    def trailing_metadata(self) -> Iterable[tuple[str, str | bytes]] | None:
        """Pairs of key and value, or None."""


def failed_call(error: RpcError) -> FailedCall:
    """What a blocking channel raises is the call that failed as well as an error."""
    return cast("FailedCall", error)


_BY_NUMBER = {code.value[0]: code for code in StatusCode}


def error_of(failed: FailedCall) -> AdmissionError:
    """The exception for a failed call; AdmissionError itself for a code not in the tree."""
    code = failed.code()
    details = failed.details() or code.name
    too_large = _TOO_LARGE.search(details)
    if too_large is not None:
        # The code is that of a full queue, and asking again would not help.
        sentence = f"the request has {too_large[1]} bytes, and a service takes {too_large[2]}"
        return InvalidRequest(code, sentence, (Violation("", sentence),))
    kind = _CLASSES.get(code, AdmissionError)
    return kind(code, details, _violations(failed))


def error_of_item(code: int, message: str) -> AdmissionError:
    """The exception for one pod of a stream on which no decision was made."""
    status = _BY_NUMBER.get(code, StatusCode.UNKNOWN)
    return _CLASSES.get(status, AdmissionError)(status, message)


def _violations(failed: FailedCall) -> tuple[Violation, ...]:
    """What the typed details of the status name; details that are none of ours name nothing."""
    from numalign.status.v1.status_pb2 import Status

    found: list[Violation] = []
    for key, value in failed.trailing_metadata() or ():
        if key != _DETAILS_KEY or not isinstance(value, bytes):
            continue
        try:
            for packed in Status.FromString(value).details:
                found += _unpacked(packed.type_url.rpartition("/")[2], packed.value)
        except DecodeError:
            # The status itself is still there; only its extra details cannot be read.
            continue
    return tuple(found)


def _unpacked(kind: str, data: bytes) -> list[Violation]:
    from numalign.status.v1.status_pb2 import BadRequest, PreconditionFailure

    match kind:
        case "google.rpc.BadRequest":
            request = BadRequest.FromString(data)
            return [Violation(v.field, v.description) for v in request.field_violations]
        case "google.rpc.PreconditionFailure":
            failure = PreconditionFailure.FromString(data)
            return [Violation(v.subject, v.description) for v in failure.violations]
    return []

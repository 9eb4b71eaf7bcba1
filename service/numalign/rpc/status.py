"""Errors as gRPC statuses, with typed details, and back.

Separate from the servers, because clients need the way back and Admission the text alone.
Details travel as google.rpc messages in the trailing metadata, as every gRPC language reads
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError, Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, PreconditionFailure
from google.rpc.status_pb2 import Status
from grpc import StatusCode, aio

from numalign import errors
from numalign.errors import FieldViolation

STATUS_DETAILS = "grpc-status-details-bin"
"""The trailing metadata that carries a google.rpc.Status."""

STATE_NOT_WRITTEN = "STATE_NOT_WRITTEN"
"""The reason of an ErrorInfo: a state file, named in its metadata, cannot be written."""

_DOMAIN = "numalign"

_CODES: Mapping[type[BaseException], StatusCode] = {
    errors.InvalidInput: StatusCode.INVALID_ARGUMENT,
    errors.SpecChanged: StatusCode.FAILED_PRECONDITION,
    errors.NodeUnknown: StatusCode.FAILED_PRECONDITION,
    errors.NotPrepared: StatusCode.FAILED_PRECONDITION,
    errors.NotKept: StatusCode.FAILED_PRECONDITION,
    errors.NotUnprepared: StatusCode.UNAVAILABLE,
    errors.NotFound: StatusCode.NOT_FOUND,
    errors.AlreadyExists: StatusCode.ALREADY_EXISTS,
    errors.Unavailable: StatusCode.UNAVAILABLE,
    errors.QueueFull: StatusCode.RESOURCE_EXHAUSTED,
    errors.Undecided: StatusCode.RESOURCE_EXHAUSTED,
    errors.RevisionTooOld: StatusCode.OUT_OF_RANGE,
    errors.StateNotWritten: StatusCode.UNAVAILABLE,
    # A setting that is changed at run time, refused: the request was understood.
    errors.ConfigError: StatusCode.FAILED_PRECONDITION,
}

# gRPC gives all metadata of an answer 8 KiB by default, and more than that loses the status.
_MESSAGE_BYTES = 2048
_DETAILS_BYTES = 3072

Trailing = tuple[tuple[str, str | bytes], ...]


def is_expected(error: BaseException) -> bool:
    """Whether the error says something to the caller; any other is a fault of ours."""
    if isinstance(error, aio.AioRpcError) or _is_timeout(error):
        return True
    return _code_of(error) is not None


def wants_a_human(error: BaseException) -> bool:
    """Whether somebody has to do something before such calls succeed again."""
    return not is_expected(error) or isinstance(error, errors.StateNotWritten)


def status_of(error: BaseException) -> tuple[StatusCode, str]:
    """The code and message that a caller gets for `error`.

    A failed call to another service keeps its code and message. Anything unexpected is
    INTERNAL and names its type.
    """
    if isinstance(error, aio.AioRpcError):
        return error.code(), error.details() or ""
    if _is_timeout(error):
        return StatusCode.DEADLINE_EXCEEDED, str(error) or "Deadline Exceeded"
    code = _code_of(error)
    if code is not None:
        return code, _cut(str(error))
    if isinstance(error, errors.NumalignError):
        return StatusCode.INTERNAL, _cut(str(error))
    return StatusCode.INTERNAL, _cut(f"internal error: {type(error).__name__}: {error}")


def trailing_of(error: BaseException) -> Trailing:
    """The trailing metadata that goes with `status_of(error)`; empty if there are no details.

    What another service said of why it is not available is passed on.
    """
    if isinstance(error, aio.AioRpcError):
        data = _details_bytes(error)
        return ((STATUS_DETAILS, data),) if data is not None else ()
    details = _details_of(error)
    if not details:
        return ()
    code, message = status_of(error)
    status = Status(code=code.value[0], message=message, details=details)
    return ((STATUS_DETAILS, status.SerializeToString()),)


def violations_of(error: aio.AioRpcError) -> tuple[FieldViolation, ...]:
    """The fields that a failed call names as wrong; never empty.

    A server that gives no details, or details that cannot be read, is understood to object
    to the request as a whole: one violation of the empty field, with the status message.
    """
    found: list[FieldViolation] = []
    for packed in _received_details(error):
        request = BadRequest()
        if packed.Is(BadRequest.DESCRIPTOR) and packed.Unpack(request):
            found += [FieldViolation(v.field, v.description) for v in request.field_violations]
    return tuple(found) or (FieldViolation("", error.details() or error.code().name),)


def _code_of(error: BaseException) -> StatusCode | None:
    for kind in type(error).__mro__:
        if kind in _CODES:
            return _CODES[kind]
    return None


def _is_timeout(error: BaseException) -> bool:
    # A timeout of the operating system has an errno; a deadline of asyncio has none.
    return isinstance(error, TimeoutError) and error.errno is None


def _details_of(error: BaseException) -> list[AnyMessage]:
    detail = _detail_of(error)
    if detail is not None:
        packed = AnyMessage()
        packed.Pack(detail)
        return [packed]
    if isinstance(error, errors.Unavailable) and isinstance(error.__cause__, aio.AioRpcError):
        return _received_details(error.__cause__)
    return []


def _received_details(error: aio.AioRpcError) -> list[AnyMessage]:
    """The details that came with a failed call; none where they cannot be read."""
    data = _details_bytes(error)
    if data is None:
        return []
    status = Status()
    try:
        status.ParseFromString(data)
    except DecodeError:
        return []
    return list(status.details)


def _detail_of(error: BaseException) -> Message | None:
    if isinstance(error, errors.InvalidInput):
        request: Message = BadRequest(field_violations=_that_fit(error.violations))
        return request
    if isinstance(error, errors.SpecChanged):
        return _precondition("SPEC_CHANGED", error.field, error)
    if isinstance(error, errors.NodeUnknown):
        return _precondition("NODE_UNKNOWN", "node", error)
    if isinstance(error, errors.StateNotWritten):
        info: Message = ErrorInfo(
            reason=STATE_NOT_WRITTEN, domain=_DOMAIN, metadata={"file": _cut(error.path)}
        )
        return info
    return None


def _precondition(kind: str, subject: str, error: BaseException) -> Message:
    violation = PreconditionFailure.Violation(
        type=kind, subject=subject, description=_cut(str(error))
    )
    failure: Message = PreconditionFailure(violations=[violation])
    return failure


def _that_fit(violations: Iterable[FieldViolation]) -> list[BadRequest.FieldViolation]:
    fitting: list[BadRequest.FieldViolation] = []
    size = 0
    for violation in violations:
        message = BadRequest.FieldViolation(
            field=violation.field, description=_cut(violation.description)
        )
        size += message.ByteSize() + 3
        if fitting and size > _DETAILS_BYTES - _MESSAGE_BYTES:
            break
        fitting.append(message)
    return fitting


def _cut(text: str) -> str:
    data = text.encode()
    if len(data) <= _MESSAGE_BYTES:
        return text
    return data[: _MESSAGE_BYTES - 3].decode(errors="ignore") + "..."


def _details_bytes(error: aio.AioRpcError) -> bytes | None:
    for key, value in error.trailing_metadata() or ():
        if key == STATUS_DETAILS and isinstance(value, bytes):
            return value
    return None

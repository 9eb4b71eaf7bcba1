"""Calls of a provider that come over one open stream, which costs each of them half as much.

Separate from the servicer, whose methods are the same however they are called. Calls come one
at a time to a provider anyhow, so those of a stream are answered in the order in which they
come; one that its caller has given up meanwhile is carried out, as it is when it waits for its
turn in a thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

import grpc
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from numalign.v1 import call_stream_pb2 as cs
from numalign.v1 import call_stream_pb2_grpc as cs_grpc
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import hint_provider_pb2_grpc as hp_grpc

_SERVICE = "HintProvider"
_log = logging.getLogger(__name__)

_Metadata = tuple[tuple[str, str | bytes], ...]
_Method = tuple[Callable[[Any, Any], Message], type[Message]]


class CallStreamServicer(cs_grpc.CallStreamServicer):
    """Carries the unary calls of one HintProvider servicer."""

    def __init__(self, servicer: hp_grpc.HintProviderServicer) -> None:
        service = hp.DESCRIPTOR.services_by_name[_SERVICE]
        self._methods: dict[str, _Method] = {
            f"/{service.full_name}/{method.name}": (
                getattr(servicer, method.name),
                GetMessageClass(method.input_type),
            )
            for method in service.methods
            if not (method.client_streaming or method.server_streaming)
        }

    def Carry(  # noqa: N802 - the contract's
        self, request_iterator: Iterator[cs.CarryRequest], context: grpc.ServicerContext
    ) -> Iterator[cs.CarryResponse]:
        """Answers one call after the other until the caller has no more."""
        yield cs.CarryResponse()
        for message in request_iterator:
            if message.method:
                yield self._answer(message, context)

    def _answer(self, message: cs.CarryRequest, stream: grpc.ServicerContext) -> cs.CarryResponse:
        found = self._methods.get(message.method)
        if found is None:
            return _failure(message, grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
        method, request_class = found
        context = _CarriedContext(message, stream)
        try:
            request = request_class.FromString(message.request)
        except DecodeError as error:
            text = f"Exception deserializing request: {error}"
            return _failure(message, grpc.StatusCode.INTERNAL, text)
        try:
            response = method(request, context)
        except _Aborted as aborted:
            return _failure(message, aborted.status, aborted.details)
        except Exception as error:
            # What an author's code raises is told as gRPC tells it of a call of its own.
            _log.exception("%s failed", message.method)
            text = f"Exception calling application: {error}"
            return _failure(message, grpc.StatusCode.UNKNOWN, text)
        return cs.CarryResponse(id=message.id, response=response.SerializeToString())


class _Aborted(Exception):
    """A method has ended its call with a status."""

    def __init__(self, status: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self.status = status
        self.details = details


class _CarriedContext(grpc.ServicerContext):
    """What a method sees of a call that came over a stream."""

    def __init__(self, message: cs.CarryRequest, stream: grpc.ServicerContext) -> None:
        self._message = message
        self._stream = stream
        self._deadline: float | None = None
        if message.HasField("timeout"):
            seconds = message.timeout.ToTimedelta().total_seconds()
            self._deadline = time.monotonic() + seconds

    def is_active(self) -> bool:
        """Whether somebody waits for the answer."""
        active: bool = self._stream.is_active()
        return active and self.time_remaining() != 0

    def time_remaining(self) -> float | None:  # type: ignore[override]
        """Seconds until the deadline; None if there is none."""
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - time.monotonic())

    def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        """End the call with an error status."""
        raise _Aborted(code, details)

    def abort_with_status(self, status: grpc.Status) -> NoReturn:
        """End the call with an error status."""
        raise _Aborted(status.code, status.details)

    def invocation_metadata(self) -> _Metadata:
        """The metadata of the call, such as its trace context."""
        return tuple(
            (entry.key, entry.value if entry.key.endswith("-bin") else entry.value.decode())
            for entry in self._message.metadata
        )

    def peer(self) -> str:
        """Who opened the stream."""
        return self._stream.peer()

    def peer_identities(self) -> Iterable[bytes] | None:
        """Who opened the stream."""
        return self._stream.peer_identities()

    def peer_identity_key(self) -> str | None:
        """Who opened the stream."""
        return self._stream.peer_identity_key()

    def auth_context(self) -> Mapping[str, bytes]:
        """Who opened the stream."""
        return self._stream.auth_context()

    def add_callback(self, callback: Callable[[], None]) -> bool:
        """Not for a call whose end nobody waits for: nothing is registered."""
        del callback
        return False

    def cancel(self) -> NoReturn:
        """End the call."""
        raise _Aborted(grpc.StatusCode.CANCELLED, "the call was cancelled by its method")

    def send_initial_metadata(self, initial_metadata: object) -> NoReturn:
        """A stream has no initial metadata for single calls."""
        raise NotImplementedError("initial metadata of a call that came over a stream")

    def set_trailing_metadata(self, trailing_metadata: object) -> NoReturn:
        """No method of a provider sends trailing metadata."""
        raise NotImplementedError("trailing metadata of a call that came over a stream")

    def set_code(self, code: grpc.StatusCode) -> NoReturn:
        """No method of a provider ends in a status beside its response."""
        raise NotImplementedError("set_code of a call that came over a stream: use abort")

    def set_details(self, details: str) -> NoReturn:
        """No method of a provider ends in a status beside its response."""
        raise NotImplementedError("set_details of a call that came over a stream: use abort")


def _failure(message: cs.CarryRequest, code: grpc.StatusCode, text: str) -> cs.CarryResponse:
    failure = cs.CallFailure(code=code.value[0], message=text)
    return cs.CarryResponse(id=message.id, failure=failure)

"""What a servicer sees of a call that never leaves the process.

Separate from `local`, which starts such calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

import grpc
from grpc import StatusCode, aio

from numalign.rpc.deadline import current_deadline
from numalign.telemetry.trace_context import TRACEPARENT, current_trace

MetadataItems = Sequence[tuple[str, str | bytes]]


class LocalContext(aio.ServicerContext[Any, Any]):
    """A servicer's context without a connection.

    The deadline is the call's own or that of the call being answered, whichever is first; the
    metadata are the caller's, with the trace that the caller works for.
    """

    __slots__ = ("_code", "_deadline", "_details", "_metadata", "_trailing", "send", "take")

    def __init__(self, timeout: float | None, metadata: Iterable[tuple[str, str | bytes]]) -> None:
        deadline = current_deadline.get()
        if timeout is not None:
            own = asyncio.get_running_loop().time() + timeout
            deadline = own if deadline is None else min(own, deadline)
        self._deadline = deadline
        self._metadata = metadata
        self._code: StatusCode | None = None
        self._details = ""
        self._trailing: MetadataItems = ()
        self.send: Callable[[Any], Any] | None = None
        self.take: Callable[[], Any] | None = None

    def error(self) -> aio.AioRpcError:
        """The call's failure as its caller catches it."""
        return aio.AioRpcError(
            self._code or StatusCode.UNKNOWN,
            aio.Metadata(),
            aio.Metadata(*self._trailing),
            self._details,
            None,
        )

    async def abort(
        self, code: StatusCode, details: str = "", trailing_metadata: Any = ()
    ) -> NoReturn:
        """End the call with a status that is not OK."""
        if code is StatusCode.OK:
            code, details = StatusCode.UNKNOWN, "abort with OK"
        self._code = code
        self._details = details or self._details
        self._trailing = tuple(trailing_metadata) or self._trailing
        raise aio.AbortError("Locally aborted.")

    async def abort_with_status(self, status: grpc.Status) -> NoReturn:
        """End the call with a status that is not OK."""
        await self.abort(status.code, status.details, status.trailing_metadata)

    async def read(self) -> Any:
        """The next request of a stream, or `aio.EOF`."""
        if self.take is None:
            raise aio.UsageError("the call has no stream of requests")
        return await self.take()

    async def write(self, message: Any) -> None:
        """Send one response of a stream."""
        if self.send is None:
            raise aio.UsageError("the call has no stream of responses")
        await self.send(message)

    async def send_initial_metadata(self, initial_metadata: object) -> None:
        """There are none inside the process."""

    def set_trailing_metadata(self, trailing_metadata: Any) -> None:
        """What the caller finds behind the answer."""
        self._trailing = tuple(trailing_metadata)

    def trailing_metadata(self) -> Any:
        """What was set."""
        return self._trailing

    def invocation_metadata(self) -> Any:
        """The caller's metadata."""
        trace = current_trace.get()
        if trace is None or any(key == TRACEPARENT for key, _ in self._metadata):
            return self._metadata
        return (*self._metadata, *trace.metadata())

    def set_code(self, code: StatusCode) -> None:
        """The code of an answer that is given without an abort."""
        self._code = code

    def set_details(self, details: str) -> None:
        """The message that goes with `set_code`."""
        self._details = details

    def code(self) -> Any:
        """The code that was set; None stands for OK."""
        return self._code

    def details(self) -> str:
        """The message that was set."""
        return self._details

    def time_remaining(self) -> Any:
        """Seconds until the deadline, at least 0; None if there is none."""
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - asyncio.get_running_loop().time())

    def set_compression(self, compression: object) -> None:
        """Nothing is serialised."""

    def disable_next_message_compression(self) -> None:
        """Nothing is serialised."""

    def peer(self) -> str:
        """Who calls: this very process."""
        return "local:"

    def peer_identities(self) -> None:
        """The process knows itself without credentials."""

    def peer_identity_key(self) -> None:
        """The process knows itself without credentials."""

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """Empty, as on a Unix socket."""
        return {}

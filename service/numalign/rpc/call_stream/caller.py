"""The caller's side: one stream for a channel, opened once and kept, with many calls on it.

A call goes over the stream only while that is known to be open. Until then, and whenever it
is not, the call is made by itself, as if there were no stream; so a server that has none, or
that is not back yet, makes no call fail that would not fail anyhow. What was sent and is not
answered when the stream breaks has failed as UNAVAILABLE: nobody can say whether it was
carried out, as with a call whose connection broke. It is never sent twice.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any

from google.protobuf.message import DecodeError
from grpc import StatusCode, aio

from numalign.rpc.call_stream.carried_call import CarriedCall
from numalign.rpc.call_stream.messages import (
    call_message,
    code_of,
    give_up_message,
    metadata_of,
)
from numalign.telemetry.logs import get_logger
from numalign.v1 import call_stream_pb2 as cs

RETRY_SECONDS = 10.0
"""How long a server that has no streams of calls is not asked for one."""

_log = get_logger("rpc")

Call = Callable[..., Any]


class CallStream:
    """The stream of one channel. `open_stream` makes the call that carries the others.

    `longest` is how many bytes a message of the stream may have. A stream is opened only once
    somebody has said that it is wanted, when the next call comes.
    """

    def __init__(
        self, open_stream: Callable[[], Any], longest: int, *, wanted: bool = False
    ) -> None:
        self._open_stream = open_stream
        self._longest = longest
        self._wanted = wanted
        self._stream: Any = None
        self._listening: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._numbers = itertools.count(1)
        self._calls: dict[int, CarriedCall] = {}
        self._unsent: deque[tuple[int, bytes]] = deque()
        self._writing: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether calls go over the stream now."""
        return self._stream is not None and self._wanted

    def want(self, wanted: bool) -> None:
        """Use a stream from now on, or (False) none: calls on it fail."""
        self._wanted = wanted
        if not wanted and self._listening is not None:
            self._listening.cancel()

    def carrying(
        self,
        path: str,
        serialize: Callable[[Any], bytes] | None,
        deserialize: Callable[[bytes], Any] | None,
        otherwise: Call,
    ) -> Call:
        """A way to call the method at `path`; `otherwise` makes the same call by itself."""

        def call(
            request: Any,
            *,
            timeout: float | None = None,
            metadata: Any = None,
            wait_for_ready: bool | None = None,
            **options: Any,
        ) -> Any:
            if self.is_open and not wait_for_ready and (timeout is None or timeout > 0):
                number = next(self._numbers)
                data = request if serialize is None else serialize(request)
                message = call_message(number, path, data, timeout, metadata or ())
                # What is too long for the stream may be just short enough for a call.
                if len(message) <= self._longest:
                    return self._send(number, message, timeout, deserialize)
            elif self._wanted:
                self._begin()
            return otherwise(
                request,
                timeout=timeout,
                metadata=metadata,
                wait_for_ready=wait_for_ready,
                **options,
            )

        return call

    def _send(
        self,
        number: int,
        message: bytes,
        timeout: float | None,
        deserialize: Callable[[bytes], Any] | None,
    ) -> CarriedCall:
        call = CarriedCall(number, timeout, deserialize, self._left)
        self._calls[number] = call
        self._put(number, message)
        return call

    def _left(self, number: int) -> None:
        """The caller has given the call up: say so, or do not send it at all."""
        if self._calls.pop(number, None) is None:
            return
        for unsent in self._unsent:
            if unsent[0] == number:
                self._unsent.remove(unsent)
                return
        self._put(number, give_up_message(number))

    def _put(self, number: int, message: bytes) -> None:
        self._unsent.append((number, message))
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(
                self._write(self._stream), context=Context()
            )

    async def _write(self, stream: Any) -> None:
        try:
            while self._unsent and self._stream is stream:
                await stream.write(self._unsent.popleft()[1])
        except (aio.AioRpcError, asyncio.InvalidStateError):
            # The stream is over; who listens to it is told why, and tells the callers.
            return
        finally:
            if self._stream is stream:
                self._writing = None

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        if self._listening is None and loop.time() >= self._not_before:
            # In a context of its own: a stream has no part in the call that it is opened for.
            self._listening = loop.create_task(self._listen(), context=Context())

    async def _listen(self) -> None:
        stream = None
        code, details = StatusCode.UNAVAILABLE, "the server has ended it"
        try:
            stream = self._open_stream()
            while (data := await stream.read()) is not aio.EOF:
                answer = cs.CarryResponse.FromString(data)
                if answer.id:
                    self._answered(answer)
                else:
                    self._stream = stream
        except aio.AioRpcError as error:
            code, details = error.code(), error.details() or ""
        except (DecodeError, UnicodeDecodeError) as error:
            code, details = StatusCode.UNIMPLEMENTED, f"unreadable answer: {error}"
            _log.warning("a stream of calls is not used", why=details)
        finally:
            self._listening = None
            if stream is not None:
                stream.cancel()
            if code is StatusCode.UNIMPLEMENTED:
                self._not_before = asyncio.get_running_loop().time() + RETRY_SECONDS
            self._broken(f"the stream of calls broke: {code.name}: {details}")

    def _answered(self, answer: cs.CarryResponse) -> None:
        call = self._calls.pop(answer.id, None)
        if call is None:
            # Given up meanwhile.
            return
        trailing = aio.Metadata(*metadata_of(answer.trailing))
        if answer.HasField("failure"):
            call.failed(code_of(answer.failure), answer.failure.message, trailing)
        else:
            call.answered(answer.response, trailing)

    def _broken(self, why: str) -> None:
        self._stream = self._writing = None
        self._unsent.clear()
        calls, self._calls = self._calls, {}
        for call in calls.values():
            call.failed(StatusCode.UNAVAILABLE, why)

"""The server's side: calls that come over streams, given to the methods of the same server.

Each call gets what a call of its own would get: the guarded method, a task, a context with its
deadline and metadata, an end when its caller gives it up, and the limits of `call_clock`. That
a stream is open is no call in hand, so nothing ends one that is idle.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Any

from google.protobuf.message import DecodeError
from grpc import StatusCode, aio

from numalign.config.settings import LimitSettings
from numalign.rpc.call_stream.messages import (
    PATH,
    answer_message,
    failure_message,
    metadata_of,
    ready_message,
    timeout_of,
)
from numalign.rpc.context import Context
from numalign.rpc.local_context import LocalContext
from numalign.rpc.methods import Method
from numalign.telemetry.logs import get_logger
from numalign.v1 import call_stream_pb2 as cs

_log = get_logger("rpc")


class CallStreams:
    """The streams of one server. `methods` are guarded; the unary ones of them are carried.

    `longest` is how many bytes an answer may have.
    """

    def __init__(self, methods: Iterable[Method], limits: LimitSettings, longest: int) -> None:
        self.methods = {
            method.path: method
            for method in methods
            if not (method.request_streaming or method.response_streaming)
        }
        self.limits = limits
        self.longest = longest
        self.in_hand = 0
        self.stopping = False
        self._streams: set[_Stream] = set()

    def method(self) -> Method:
        """The method that a server has for its streams."""
        service, name = PATH[1:].split("/")
        return Method(
            service=service,
            name=name,
            behaviour=self._carry,
            request_streaming=True,
            response_streaming=True,
            request_deserializer=None,
            response_serializer=None,
        )

    def stop(self) -> None:
        """Take no more calls, and end each stream when its calls in hand are over."""
        self.stopping = True
        for stream in self._streams:
            stream.end_when_idle()

    async def _carry(self, requests: object, context: Context) -> None:
        del requests
        stream = _Stream(self, context)
        self._streams.add(stream)
        try:
            await stream.run()
        finally:
            self._streams.discard(stream)


class _Call:
    """One call in hand."""

    __slots__ = ("expired", "task", "timer")

    def __init__(self) -> None:
        self.expired = False
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None

    def expire(self) -> None:
        """Its time is over."""
        self.expired = True
        self.cancel()

    def cancel(self) -> None:
        """Its caller, or its stream, is gone."""
        if self.task is not None:
            self.task.cancel()


class _Stream:
    """One stream: who reads it, who answers, and the calls in hand."""

    def __init__(self, streams: CallStreams, context: Context) -> None:
        self._streams = streams
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._calls: dict[int, _Call] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._answers: deque[bytes] = deque()
        self._writing = False
        self._ending = False
        self._unreadable = ""
        self._over: asyncio.Future[None] = self._loop.create_future()

    async def run(self) -> None:
        """Carry calls until the caller has no more of them, or the server stops."""
        await self._put(ready_message())
        # What reads ends by itself when gRPC knows that the stream is over.
        reading = self._loop.create_task(self._read())
        reading.add_done_callback(_log_failure)
        if self._streams.stopping:
            self.end_when_idle()
        try:
            await self._over
        finally:
            for task in tuple(self._tasks):
                task.cancel()
        if self._unreadable:
            await self._context.abort(StatusCode.INVALID_ARGUMENT, self._unreadable)

    def end_when_idle(self) -> None:
        """End the stream once no call is in hand."""
        self._ending = True
        if not self._tasks and not self._over.done():
            self._over.set_result(None)

    async def _read(self) -> None:
        try:
            while (data := await self._context.read()) is not aio.EOF:
                await self._take(data)
                # The call that has begun goes first: the next can wait, its caller cannot.
                await asyncio.sleep(0)
        except (DecodeError, ValueError) as error:
            self._unreadable = f"the stream of calls cannot be read: {error}"
        except (aio.AbortError, aio.UsageError, aio.InternalError):
            # gRPC has ended the stream, and its handler with it.
            return
        self.end_when_idle()

    async def _take(self, data: bytes) -> None:
        message = cs.CarryRequest.FromString(data)
        number = message.id
        if not message.method:
            given_up = self._calls.get(number)
            if given_up is not None:
                given_up.cancel()
            return
        method = self._streams.methods.get(message.method)
        limits = self._streams.limits
        if method is None:
            await self._put(failure_message(number, StatusCode.UNIMPLEMENTED, "Method not found!"))
        elif self._streams.in_hand >= limits.calls:
            text = "Concurrent RPC limit exceeded!"
            await self._put(failure_message(number, StatusCode.RESOURCE_EXHAUSTED, text))
        elif self._streams.stopping:
            text = "the server is stopping"
            await self._put(failure_message(number, StatusCode.UNAVAILABLE, text))
        else:
            self._begin(number, method, message)

    def _begin(self, number: int, method: Method, message: cs.CarryRequest) -> None:
        if not number or number in self._calls:
            raise ValueError(f"id: {number} is 0 or that of a call in hand")
        timeout = timeout_of(message)
        metadata = metadata_of(message.metadata)
        context = _CarriedContext(timeout, metadata, self._context)
        call = _Call()
        longest = self._streams.limits.call_timeout
        left = longest if timeout is None else min(timeout, longest)
        call.timer = self._loop.call_later(left, call.expire)
        self._calls[number] = call
        self._streams.in_hand += 1
        call.task = task = self._loop.create_task(
            self._answer(number, call, method, message.request, context)
        )
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, number, call))

    def _decided(self, number: int, call: _Call) -> None:
        """There is nothing left to be given up or to expire."""
        self._calls.pop(number, None)
        if call.timer is not None:
            call.timer.cancel()
            call.timer = None

    def _ended(self, number: int, call: _Call, task: asyncio.Task[None]) -> None:
        self._decided(number, call)
        self._streams.in_hand -= 1
        self._tasks.discard(task)
        _log_failure(task)
        if self._ending:
            self.end_when_idle()

    async def _answer(
        self, number: int, call: _Call, method: Method, request: bytes, context: _CarriedContext
    ) -> None:
        try:
            answer = await self._outcome(number, method, request, context)
        except asyncio.CancelledError:
            task = call.task
            if call.expired and task is not None:
                task.uncancel()
                text = self._too_long(context)
                answer = failure_message(number, StatusCode.DEADLINE_EXCEEDED, text)
            elif task is not None and not task.cancelling():
                # The method gave up by itself: its caller must hear of it.
                answer = failure_message(number, StatusCode.CANCELLED, "the call was cancelled")
            else:
                raise
        self._decided(number, call)
        await self._put(answer)

    async def _outcome(
        self, number: int, method: Method, request: bytes, context: _CarriedContext
    ) -> bytes:
        deserialize, serialize = method.request_deserializer, method.response_serializer
        try:
            message = request if deserialize is None else deserialize(request)
        except Exception as error:
            text = f"Exception deserializing request: {error}"
            return failure_message(number, StatusCode.INTERNAL, text)
        try:
            response = await method.behaviour(message, context)
        except aio.AbortError:
            response = None
        code = context.code() or StatusCode.OK
        trailing = context.trailing_metadata()
        if response is None and code is StatusCode.OK:
            raise AssertionError(f"{method.path} ended without a response and without a status")
        if code is not StatusCode.OK:
            return failure_message(number, code, context.details(), trailing)
        answer = answer_message(
            number, response if serialize is None else serialize(response), trailing
        )
        if len(answer) > self._streams.longest:
            text = f"Sent message larger than max ({len(answer)} vs. {self._streams.longest})"
            return failure_message(number, StatusCode.RESOURCE_EXHAUSTED, text)
        return answer

    def _too_long(self, context: _CarriedContext) -> str:
        if context.time_remaining() == 0:
            return "Deadline Exceeded"
        return f"the call took longer than {self._streams.limits.call_timeout:g} s"

    async def _put(self, answer: bytes) -> None:
        """Send an answer behind those that wait already; gRPC takes one at a time."""
        self._answers.append(answer)
        if self._writing:
            return
        self._writing = True
        try:
            while self._answers:
                await self._context.write(self._answers.popleft())
        except (aio.AbortError, aio.UsageError, aio.InternalError):
            # The stream is over, which its handler is told by gRPC; nobody waits for answers.
            self._answers.clear()
        finally:
            self._writing = False


def _log_failure(task: asyncio.Task[None]) -> None:
    """Of a task that nobody awaits."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("a stream of calls failed", exc_info=error)


class _CarriedContext(LocalContext):
    """A servicer's context of a call that came over a stream."""

    __slots__ = ("_stream",)

    def __init__(
        self,
        timeout: float | None,
        metadata: Iterable[tuple[str, str | bytes]],
        stream: Context,
    ) -> None:
        super().__init__(timeout, metadata)
        self._stream = stream

    def peer(self) -> str:
        """Who opened the stream."""
        peer: str = self._stream.peer()
        return peer

    def auth_context(self) -> Any:
        """What is known of who opened the stream."""
        return self._stream.auth_context()

"""A streaming call inside the process: a task that feeds what the caller reads.

Separate from `local_unary`, whose calls do without a task. The two directions are bounded, so
that a slow reader slows the writer down, as over a socket.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator
from typing import Any

from grpc import StatusCode, aio

from numalign.rpc.local_context import LocalContext
from numalign.rpc.local_unary import deadline_error
from numalign.rpc.methods import Method

_BUFFER = 16


class _Pipe:
    """A bounded stream of messages with one reader; it is closed by its writer."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._closed = False
        self._changed = asyncio.Event()

    async def put(self, item: Any) -> None:
        while len(self._items) >= _BUFFER and not self._closed:
            await self._change()
        if self._closed:
            raise aio.UsageError("the stream is closed")
        self._items.append(item)
        self._wake()

    async def get(self) -> Any:
        while not self._items:
            if self._closed:
                return aio.EOF
            await self._change()
        item = self._items.popleft()
        self._wake()
        return item

    def close(self) -> None:
        self._closed = True
        self._wake()

    async def _change(self) -> None:
        await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class _State:
    """What the call and its task share. The task must not hold the call (see `__del__`)."""

    def __init__(self, context: LocalContext) -> None:
        self.context = context
        self.requests = _Pipe()
        self.responses = _Pipe()
        self.response: Any = None
        self.error: BaseException | None = None
        self.code: StatusCode | None = None


class LocalStream:
    """One call with a stream in one direction or both. It starts at once.

    A call that is dropped before its end is cancelled.
    """

    def __init__(
        self,
        method: Method | None,
        request: Any,
        context: LocalContext,
        timeout: float | None,
    ) -> None:
        self._state = _State(context)
        context.send = self._state.responses.put
        context.take = self._state.requests.get
        if method is not None and method.request_streaming:
            request = _requests(request, self._state.requests)
        self._task = asyncio.get_running_loop().create_task(
            _pump(method, request, self._state, timeout)
        )

    def __del__(self) -> None:
        task: asyncio.Task[None] | None = getattr(self, "_task", None)
        if task is not None and not task.done() and not task.get_loop().is_closed():
            task.cancel()

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (response := await self.read()) is not aio.EOF:
            yield response

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._result().__await__()

    async def read(self) -> Any:
        """The next response, or `aio.EOF`; raises the call's error behind the last one."""
        response = await self._or_cancel(self._state.responses.get())
        if response is aio.EOF:
            await self._result()
        return response

    async def write(self, request: Any) -> None:
        """Send one request."""
        try:
            await self._or_cancel(self._state.requests.put(request))
        except aio.UsageError as error:
            if self._state.code is None:
                raise
            raise asyncio.InvalidStateError("RPC already finished.") from error

    async def done_writing(self) -> None:
        """There are no more requests."""
        self._state.requests.close()

    def cancel(self) -> bool:
        """Cancel the call; False if it is over already."""
        return self._task.cancel()

    def cancelled(self) -> bool:
        """Whether the call was cancelled on this side."""
        return isinstance(self._state.error, asyncio.CancelledError)

    def done(self) -> bool:
        """Whether the call is over."""
        return self._state.code is not None

    def time_remaining(self) -> float | None:
        """Seconds until the deadline; None if there is none."""
        left: float | None = self._state.context.time_remaining()
        return left

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call `callback` with this call when it is over."""
        # The task outlives the call only by a moment, so holding the call here is no leak.
        self._task.add_done_callback(lambda _: callback(self))

    async def code(self) -> StatusCode:
        """The code, once the call is over."""
        await asyncio.wait((self._task,))
        return self._state.code or StatusCode.CANCELLED

    async def details(self) -> str:
        """The status message, once the call is over."""
        await asyncio.wait((self._task,))
        error = self._state.error
        return (error.details() or "") if isinstance(error, aio.AioRpcError) else ""

    async def initial_metadata(self) -> aio.Metadata:
        """Empty."""
        return aio.Metadata()

    async def trailing_metadata(self) -> aio.Metadata:
        """What the servicer set, once the call is over."""
        await asyncio.wait((self._task,))
        return aio.Metadata(*self._state.context.trailing_metadata())

    async def wait_for_connection(self) -> None:
        """There is nothing to connect."""

    async def _result(self) -> Any:
        await self._or_cancel(asyncio.wait((self._task,)))
        if self._state.error is not None:
            raise self._state.error
        if self._state.code is None:
            raise asyncio.CancelledError
        return self._state.response

    async def _or_cancel(self, waiting: Any) -> Any:
        try:
            return await waiting
        except asyncio.CancelledError:
            self.cancel()
            raise


async def _pump(method: Method | None, request: Any, state: _State, timeout: float | None) -> None:
    context = state.context
    try:
        if method is None:
            await context.abort(StatusCode.UNIMPLEMENTED, "Method not found!")
        async with asyncio.timeout(timeout):
            if method.response_streaming:
                async for response in method.behaviour(request, context):
                    await state.responses.put(response)
            else:
                state.response = await method.behaviour(request, context)
        code = context.code() or StatusCode.OK
        if code is not StatusCode.OK:
            state.error = context.error()
        state.code = code
    except aio.AbortError:
        state.error = context.error()
        state.code = state.error.code()
    except TimeoutError:
        state.error, state.code = deadline_error(), StatusCode.DEADLINE_EXCEEDED
    except asyncio.CancelledError as error:
        state.error, state.code = error, StatusCode.CANCELLED
    finally:
        state.requests.close()
        state.responses.close()


async def _requests(given: Any, pipe: _Pipe) -> AsyncIterator[Any]:
    if isinstance(given, AsyncIterable):
        async for request in given:
            yield request
    elif given is not None:
        for request in given:
            yield request
    else:
        while (request := await pipe.get()) is not aio.EOF:
            yield request

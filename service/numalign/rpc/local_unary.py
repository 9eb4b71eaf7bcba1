"""One unary call inside the process.

Separate from `local`, the channel, and from `local_stream`, which needs a task per call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any, cast

from grpc import StatusCode, aio

from numalign.rpc.local_context import LocalContext
from numalign.rpc.methods import Method

_DEADLINE = "Deadline Exceeded"
_CANCELLED = "Locally cancelled by application!"


class LocalUnaryCall:
    """One call. Awaited at once it runs in the awaiting task; otherwise in a task of its own.

    As over a socket, a call that nobody awaits is made all the same, and cancelling the task
    that awaits a call cancels the call.
    """

    __slots__ = (
        "_callbacks",
        "_code",
        "_context",
        "_error",
        "_expired",
        "_method",
        "_request",
        "_response",
        "_runner",
        "_start",
        "_timeout",
        "_waiters",
    )

    def __init__(
        self,
        method: Method | None,
        request: object,
        context: LocalContext,
        timeout: float | None,
    ) -> None:
        self._method = method
        self._request = request
        self._context = context
        self._timeout = timeout
        self._response: Any = None
        self._error: BaseException | None = None
        self._code: StatusCode | None = None
        self._expired = False
        self._runner: asyncio.Task[Any] | None = None
        self._callbacks: list[Callable[[Any], None]] | None = None
        self._waiters: asyncio.Event | None = None
        self._start: asyncio.Handle | None = asyncio.get_running_loop().call_soon(self._detach)

    def __await__(self) -> Generator[Any, Any, Any]:
        if self._start is not None:
            self._start.cancel()
            self._start = None
            return self._run().__await__()
        return self._result().__await__()

    def cancel(self) -> bool:
        """Cancel the call; False if it is over already."""
        if self._code is not None:
            return False
        if self._start is not None:
            self._start.cancel()
            self._start = None
            self._finish(None, asyncio.CancelledError(), StatusCode.CANCELLED)
        elif self._runner is not None:
            self._runner.cancel()
        return True

    def cancelled(self) -> bool:
        """Whether the call was cancelled on this side."""
        return isinstance(self._error, asyncio.CancelledError)

    def done(self) -> bool:
        """Whether the call is over."""
        return self._code is not None

    def time_remaining(self) -> float | None:
        """Seconds until the deadline; None if there is none."""
        left: float | None = self._context.time_remaining()
        return left

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call `callback` with this call when it is over; at once if it is."""
        if self._code is not None:
            callback(self)
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    async def code(self) -> StatusCode:
        """The code, once the call is over."""
        await self._over()
        return self._code or StatusCode.UNKNOWN

    async def details(self) -> str:
        """The status message, once the call is over."""
        await self._over()
        if isinstance(self._error, aio.AioRpcError):
            return self._error.details() or ""
        return _CANCELLED if self.cancelled() else self._context.details()

    async def initial_metadata(self) -> aio.Metadata:
        """Empty."""
        return aio.Metadata()

    async def trailing_metadata(self) -> aio.Metadata:
        """What the servicer set, once the call is over."""
        await self._over()
        return aio.Metadata(*self._context.trailing_metadata())

    async def wait_for_connection(self) -> None:
        """There is nothing to connect."""

    async def _run(self) -> Any:
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._runner = task
        context, timer = self._context, None
        cancelling = task.cancelling()
        try:
            if self._method is None:
                context.set_code(StatusCode.UNIMPLEMENTED)
                context.set_details("Method not found!")
            elif self._timeout is None:
                self._response = await self._method.behaviour(self._request, context)
            elif self._timeout <= 0:
                raise self._failed(deadline_error())
            else:
                # asyncio.timeout would do the same in twice the time.
                timer = task.get_loop().call_later(self._timeout, self._expire)
                self._response = await self._method.behaviour(self._request, context)
        except aio.AbortError:
            raise self._failed(context.error()) from None
        except asyncio.CancelledError as error:
            if self._expired and task.cancelling() - 1 <= cancelling:
                raise self._failed(deadline_error()) from None
            self._finish(None, error, StatusCode.CANCELLED)
            raise
        finally:
            if timer is not None:
                timer.cancel()
            if self._expired:
                task.uncancel()
        if context.code() not in {None, StatusCode.OK}:
            raise self._failed(context.error())
        self._finish(self._response, None, StatusCode.OK)
        return self._response

    def _expire(self) -> None:
        if self._runner is not None:
            self._expired = True
            self._runner.cancel()

    def _failed(self, error: aio.AioRpcError) -> aio.AioRpcError:
        self._finish(None, error, error.code())
        return error

    def _finish(self, response: Any, error: BaseException | None, code: StatusCode) -> None:
        self._response, self._error, self._code = response, error, code
        self._runner = None
        if self._waiters is not None:
            self._waiters.set()
        if self._callbacks is not None:
            for callback in self._callbacks:
                callback(self)

    def _detach(self) -> None:
        self._start = None
        self._runner = asyncio.get_running_loop().create_task(self._run_alone())

    async def _run_alone(self) -> None:
        try:
            await self._run()
        except (aio.AioRpcError, asyncio.CancelledError):
            # Kept for whoever awaits or asks for the code.
            return

    async def _over(self) -> None:
        if self._start is not None:
            self._start.cancel()
            self._detach()
        if self._code is None:
            if self._waiters is None:
                self._waiters = asyncio.Event()
            await self._waiters.wait()

    async def _result(self) -> Any:
        try:
            await self._over()
        except asyncio.CancelledError:
            self.cancel()
            raise
        if self._error is not None:
            raise self._error
        return self._response


def deadline_error() -> aio.AioRpcError:
    """What a caller catches when its deadline has passed."""
    return aio.AioRpcError(
        StatusCode.DEADLINE_EXCEEDED, aio.Metadata(), aio.Metadata(), _DEADLINE, None
    )

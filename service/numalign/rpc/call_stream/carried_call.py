"""One call over a stream, as its caller sees it: what a unary call of gRPC offers.

Separate from `caller`, which keeps the stream that many such calls share.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any

from grpc import StatusCode, aio

_DEADLINE = "Deadline Exceeded"
_CANCELLED = "Locally cancelled by application!"


class CarriedCall:
    """A call that is under way; cancelling who awaits it cancels it.

    `left` is told when it was given up, by its caller or by its deadline; perhaps twice.
    """

    __slots__ = (
        "_answer",
        "_deadline",
        "_deserialize",
        "_left",
        "_loop",
        "_timer",
        "_trailing",
        "number",
    )

    def __init__(
        self,
        number: int,
        timeout: float | None,
        deserialize: Callable[[bytes], Any] | None,
        left: Callable[[int], None],
    ) -> None:
        self.number = number
        self._loop = loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[Any] = loop.create_future()
        self._deserialize = deserialize
        self._left = left
        self._trailing = aio.Metadata()
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        if timeout is not None:
            self._deadline = loop.time() + timeout
            self._timer = loop.call_at(self._deadline, self._expire)
        self._answer.add_done_callback(self._over)

    def __await__(self) -> Generator[Any, Any, Any]:
        """The response. Raises AioRpcError as a call of its own does."""
        return self._answer.__await__()

    def answered(self, response: bytes, trailing: aio.Metadata) -> None:
        """The server has answered."""
        if self._answer.done():
            return
        self._trailing = trailing
        try:
            message = response if self._deserialize is None else self._deserialize(response)
        except Exception as error:
            self.failed(StatusCode.INTERNAL, f"Exception deserializing response: {error}")
        else:
            self._answer.set_result(message)

    def failed(self, code: StatusCode, details: str, trailing: aio.Metadata | None = None) -> None:
        """The call has ended with an error status."""
        if self._answer.done():
            return
        if trailing is not None:
            self._trailing = trailing
        error = aio.AioRpcError(code, aio.Metadata(), self._trailing, details, None)
        self._answer.set_exception(error)
        # A caller may look at the code alone, or at nothing.
        self._answer.exception()

    def cancel(self) -> bool:
        """Give the call up; False if it is over already."""
        given_up = self._answer.cancel()
        if given_up:
            self._left(self.number)
        return given_up

    def cancelled(self) -> bool:
        """Whether the call was given up on this side."""
        return self._answer.cancelled()

    def done(self) -> bool:
        """Whether the call is over."""
        return self._answer.done()

    def time_remaining(self) -> float | None:
        """Seconds until the deadline; None if there is none."""
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - self._loop.time())

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call `callback` with this call when it is over."""
        self._answer.add_done_callback(lambda _: callback(self))

    async def code(self) -> StatusCode:
        """The code, once the call is over."""
        error = await self._error()
        if isinstance(error, aio.AioRpcError):
            return error.code()
        return StatusCode.OK if error is None else StatusCode.CANCELLED

    async def details(self) -> str:
        """The status message, once the call is over."""
        error = await self._error()
        if isinstance(error, aio.AioRpcError):
            return error.details() or ""
        return "" if error is None else _CANCELLED

    async def initial_metadata(self) -> aio.Metadata:
        """Empty: a stream has none for single calls."""
        return aio.Metadata()

    async def trailing_metadata(self) -> aio.Metadata:
        """What came with the answer, once the call is over."""
        await self._error()
        return self._trailing

    async def wait_for_connection(self) -> None:
        """The stream is open already."""

    async def _error(self) -> BaseException | None:
        if not self._answer.done():
            await asyncio.wait((self._answer,))
        if self._answer.cancelled():
            return asyncio.CancelledError()
        return self._answer.exception()

    def _expire(self) -> None:
        self._timer = None
        self.failed(StatusCode.DEADLINE_EXCEEDED, _DEADLINE)
        self._left(self.number)

    def _over(self, answer: asyncio.Future[Any]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if answer.cancelled():
            self._left(self.number)

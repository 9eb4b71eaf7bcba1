"""A call over a socket that is waited for until gRPC is done with it, even when it is cancelled.

gRPC for Python frees what a call needs when the coroutine that waits for its end goes on. It
cancels that coroutine together with the call, and then a kilobyte is lost for good, and with an
answer that had come already the buffer that it came in (grpc/grpc#43360). A service whose callers
hang up again and again would grow without end. So here only the call is cancelled, and its
coroutine is left to come to its end. Separate from the channels, which say what calls carry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

from grpc.aio._call import Call

# The class of all calls: its `cancel` ends the call alone, those of its subclasses what waits too.
_cancel = Call.cancel


class UnaryCall:
    """A call with one response that was started; to be awaited by one task."""

    __slots__ = ("_call",)

    def __init__(self, call: Any) -> None:
        self._call = call

    def __await__(self) -> Generator[Any, None, Any]:
        """The response. Raises AioRpcError as the call does."""
        over = asyncio.get_running_loop().create_future()

        def note(_: Any) -> None:
            if not over.done():
                over.set_result(None)

        self._call.add_done_callback(note)
        try:
            yield from over
        except asyncio.CancelledError:
            _cancel(self._call)
            raise
        return (yield from self._call.__await__())

    def cancel(self) -> bool:
        """End it; false where it is over already."""
        ended: bool = _cancel(self._call)
        return ended

    def __getattr__(self, name: str) -> Any:
        """What else a call of gRPC has: its code, metadata, time left."""
        return getattr(self._call, name)

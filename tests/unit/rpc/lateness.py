"""Calls that end at their deadline while the other side handles them, on any machine.

Separate from the tests of each kind of call: a deadline that is short enough for a test can be over
before the call has arrived.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from grpc import aio
from tests.unit.rpc.echo import Echo
from tests.waiting import LONG


async def at_its_deadline(
    echo: Echo,
    call: Callable[[float], Awaitable[aio.AioRpcError]],
    seen: Callable[[], bool] = lambda: True,
) -> aio.AioRpcError:
    """How a call of `sleep` ends at its deadline, in seconds, that `echo` was handling by then.

    It is made anew with twice the time as long as the deadline came before it, or before what
    must have been `seen`.
    """
    seconds = 0.1
    while seconds < LONG:
        before = echo.slept
        error = await call(seconds)
        if echo.slept > before and seen():
            return error
        seconds *= 2
    raise AssertionError(f"not handled within {seconds:g} s")

"""Waiting for what must come about, with a limit that only a fault reaches.

A test that gives something a moment and then looks fails on a machine that has no moment to give.
Separate from the tests, which all wait in the same way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from grpc import StatusCode, aio

LONG = 60.0
"""Seconds that nothing takes, however busy the machine is."""

T = TypeVar("T")


async def until(holds: Callable[[], object], seconds: float = LONG) -> None:
    """Wait until something holds.

    Raises:
        TimeoutError: it does not in so many seconds.
    """
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - what is waited for is anything at all
            await asyncio.sleep(0.005)


async def answered(
    call: Callable[[], Awaitable[T]], *codes: StatusCode, seconds: float = LONG
) -> T:
    """The answer of a call, which is made anew as long as it ends with one of these codes.

    Raises:
        AioRpcError: it ended with another code.
        TimeoutError: it was not answered in so many seconds.
    """
    async with asyncio.timeout(seconds):
        while True:
            try:
                return await call()
            except aio.AioRpcError as error:
                if error.code() not in codes:
                    raise
            await asyncio.sleep(0.02)

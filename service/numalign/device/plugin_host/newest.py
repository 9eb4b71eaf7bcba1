"""A stream of which only the newest message matters, read nearly as fast as it comes.

Separate because it knows nothing of plugins: it keeps one that floods its stream from
keeping the provider busy, and from being believed late.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TypeVar

T = TypeVar("T")

BURST = 32
"""How many messages are read before the reader takes its pause, too: the sender has to wait."""


async def newest(messages: AsyncIterator[T], pause: float) -> AsyncGenerator[T, None]:
    """Give each message at once, but after each take `pause` seconds off.

    Of the messages that come meanwhile only the last is given, also when the stream has
    ended by then. Raises what `messages` raises.
    """
    waiting: list[T] = []
    arrived = asyncio.Event()

    async def read() -> None:
        unread = BURST
        try:
            async for message in messages:
                waiting[:] = [message]
                arrived.set()
                unread -= 1
                if not unread:
                    await asyncio.sleep(pause)
                    unread = BURST
        finally:
            arrived.set()

    reader = asyncio.create_task(read())
    try:
        while True:
            if waiting:
                yield waiting.pop()
                await asyncio.sleep(pause)
            elif reader.done():
                await reader
                return
            else:
                arrived.clear()
                await arrived.wait()
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)

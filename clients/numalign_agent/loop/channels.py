"""The channels of the sync loop, and taking one thing from whichever has something (LOOP-1)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class Channel(asyncio.Queue[T]):
    """A bounded queue that wakes whoever waits for any of several."""

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self.filled = asyncio.Event()

    def offer(self, item: T) -> bool:
        """Put without waiting; False where there is no room."""
        try:
            self.put_nowait(item)
        except asyncio.QueueFull:
            return False
        return True

    def _put(self, item: T) -> None:
        # The one hook that asyncio.Queue has for every way to put.
        super()._put(item)
        self.filled.set()


class Channels:
    """Several channels, none of which is before another."""

    def __init__(self, channels: Sequence[Channel[Any]]) -> None:
        self._channels = channels
        self._filled = asyncio.Event()
        for channel in channels:
            channel.filled = self._filled

    async def take(self) -> tuple[Channel[Any], Any]:
        """One thing from a channel that has something, chosen at random if several have."""
        while True:
            ready = [channel for channel in self._channels if not channel.empty()]
            if ready:
                channel = random.choice(ready)  # noqa: S311 - fairness, not secrecy
                return channel, channel.get_nowait()
            self._filled.clear()
            await self._filled.wait()

"""One admission at a time on a node, in order of arrival, with a bounded queue.

Separate from the manager because everything that changes the books takes a turn here:
admissions, dry runs, releases, reconciliations, and the hand-shake with a provider that
restarted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from numalign.errors import QueueFull


class Turnstile:
    """A fair lock. At most `depth` callers wait; a caller that is cancelled leaves the queue."""

    def __init__(self, depth: int) -> None:
        self._lock = asyncio.Lock()
        self.depth = depth
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """How many callers wait now."""
        return self._waiting

    @property
    def taken(self) -> bool:
        """Whether somebody has the turn, so that another caller would wait."""
        return self._lock.locked()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn and hold it. Raises QueueFull when too many wait already."""
        if self._lock.locked() and self._waiting >= self.depth:
            raise QueueFull(f"{self._waiting} calls wait already, which is the configured bound")
        self._waiting += 1
        try:
            await self._lock.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._lock.release()

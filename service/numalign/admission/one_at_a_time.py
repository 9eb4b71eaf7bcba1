"""A lock in order of arrival that says how many wait for it.

Separate from the chain, which holds it over several pods as long as nobody waits.
"""

from __future__ import annotations

import asyncio
from types import TracebackType


class OneAtATime:
    """Held in an `async with` block by one at a time."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self.waiting = 0

    async def __aenter__(self) -> None:
        self.waiting += 1
        try:
            await self._lock.acquire()
        finally:
            self.waiting -= 1

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self._lock.release()

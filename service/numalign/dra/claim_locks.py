"""One thing at a time about each claim: pods that share none do not wait for each other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from numalign.dra.values import ClaimKey


class ClaimLocks:
    """Locks by claim, made when they are wanted and dropped when nobody wants them."""

    def __init__(self) -> None:
        self._locks: dict[ClaimKey, asyncio.Lock] = {}
        self._wanted: dict[ClaimKey, int] = {}

    @asynccontextmanager
    async def held(self, keys: Iterable[ClaimKey]) -> AsyncIterator[None]:
        """Hold the locks of these claims, taken in one order by everybody."""
        async with AsyncExitStack() as stack:
            for key in sorted(set(keys)):
                await stack.enter_async_context(self._held(key))
            yield

    @asynccontextmanager
    async def _held(self, key: ClaimKey) -> AsyncIterator[None]:
        lock = self._locks.setdefault(key, asyncio.Lock())
        self._wanted[key] = self._wanted.get(key, 0) + 1
        try:
            async with lock:
                yield
        finally:
            self._wanted[key] -= 1
            if not self._wanted[key]:
                del self._wanted[key], self._locks[key]

"""A source that runs, and what it delivers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from numalign_agent.pod import AgentPod
from numalign_agent.sources.port import PodSource


class Delivered:
    """The sets that were delivered, the latest last; `until` waits for one that fits."""

    def __init__(self) -> None:
        self.sets: list[tuple[AgentPod, ...]] = []
        self._more = asyncio.Event()

    async def __call__(self, pods: Sequence[AgentPod]) -> None:
        self.sets.append(tuple(pods))
        self._more.set()

    @property
    def names(self) -> list[str] | None:
        """The pods' names of the latest set; None before the first."""
        return sorted(pod.name for pod in self.sets[-1]) if self.sets else None

    async def until(self, fits: Callable[[], bool]) -> None:
        """Wait, for a while, until what was delivered fits."""
        async with asyncio.timeout(60):
            while not fits():
                self._more.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._more.wait(), 0.05)


@asynccontextmanager
async def running(source: PodSource) -> AsyncIterator[Delivered]:
    """The source runs inside of the block."""
    delivered = Delivered()
    task = asyncio.create_task(source.run(delivered))
    try:
        yield delivered
        assert not task.done(), "the source has ended"
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

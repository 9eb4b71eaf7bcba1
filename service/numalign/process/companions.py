"""What runs beside the servers of a process for as long as they run.

Separate from `serve` so that there is one way for such work to fail: the process stops in
order, and the error comes out of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Companions:
    """Tasks that a process runs beside its servers. `stop` stops the process in order."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work`; where it fails, the process stops."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(self._stop_if_failed)
        self._tasks.append(task)

    async def end(self) -> None:
        """Cancel what still runs. Raises the first error that any of it ended with."""
        for task in self._tasks:
            task.cancel()
        for outcome in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome

    def _stop_if_failed(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._stop()

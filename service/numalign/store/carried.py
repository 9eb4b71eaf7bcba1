"""Carrying a change through although its caller gives up in the middle of it.

Separate from the stores and from those who use them: whoever changes a file and then what is
in memory must do both or neither, or the two tell different stories.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def carried_through(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` to its end, however often the caller is cancelled meanwhile.

    Raises what `work` raises; CancelledError once it has ended, if the caller was cancelled.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return task.result()
    failure = None if task.cancelled() else task.exception()
    if failure is not None:
        raise failure from cancelled
    raise cancelled

"""The deadline of the call that the running task answers, so that calls it makes inherit it.

Separate from the servers that set it and the channels that read it.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

current_deadline: ContextVar[float | None] = ContextVar("numalign_deadline", default=None)
"""When the call being answered must be over, in seconds of the event loop's clock."""


def remaining() -> float | None:
    """Seconds left of the incoming call's deadline, at least 0; None if it has none."""
    deadline = current_deadline.get()
    if deadline is None:
        return None
    return max(0.0, deadline - asyncio.get_running_loop().time())


def within(timeout: float | None) -> float | None:
    """`timeout` seconds, or what is left of the incoming call's deadline if that is less."""
    left = remaining()
    if left is None:
        return timeout
    return left if timeout is None else min(timeout, left)

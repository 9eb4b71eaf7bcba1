"""The event loop that services run on.

Separate from `serve`, since what is chosen here is a library and not a matter of services. An
admission over sockets is some forty turns of the loops of five processes; uvloop's turn costs
about half of asyncio's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


def run(main: Coroutine[object, object, T]) -> T:
    """Run `main` in a loop of its own, to its end."""
    # Commands that serve nothing do without it.
    import uvloop  # noqa: PLC0415 - as said

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)

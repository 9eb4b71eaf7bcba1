"""Waiting until a program is told to end, by SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import signal
import threading
from types import FrameType

_ENDING = (signal.SIGTERM, signal.SIGINT)


def wait_for_signal() -> None:
    """Wait in the main thread; the signals keep this meaning afterwards."""
    ended = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        del number, frame
        ended.set()

    for number in _ENDING:
        signal.signal(number, end)
    ended.wait()


async def until_signalled() -> None:
    """Wait on the event loop of the main thread."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _ENDING:
        loop.add_signal_handler(number, ended.set)
    try:
        await ended.wait()
    finally:
        for number in _ENDING:
            loop.remove_signal_handler(number)

"""Whether an event loop still goes round, told to whoever asks from another thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

BEAT_SECONDS = 5.0
STILL_SECONDS = 60.0
"""After so long without a beat a loop counts as standing still."""


class Pulse:
    """Beats while its loop runs. Until `run` it counts as beating."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._beat_at = clock()

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            self._beat_at = self._clock()
            await asyncio.sleep(BEAT_SECONDS)

    def still(self) -> str | None:
        """Why the loop counts as standing still; None while it goes round."""
        seconds = self._clock() - self._beat_at
        return None if seconds < STILL_SECONDS else f"the loop stands still since {seconds:.0f} s"

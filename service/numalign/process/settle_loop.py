"""Settling with providers as soon as they are there, not at the next pod.

Separate from the settlement, which is done once at a time: here is when, and how soon again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from numalign.errors import NumalignError
from numalign.telemetry.logs import get_logger
from numalign.topology.registry import ProviderRegistry

_log = get_logger("topology")

FIRST_PAUSE_SECONDS = 0.01
LONGEST_PAUSE_SECONDS = 1.0
"""How long is waited after a failure at least: first, and, doubled each time, at most."""

Sleep = Callable[[float], Awaitable[None]]


async def settle_whenever_needed(
    settle: Callable[[], Awaitable[None]],
    registry: ProviderRegistry,
    settled: asyncio.Event,
    sleep: Sleep = asyncio.sleep,
) -> None:
    """Bring record and books together whenever a provider has to be told the picture; no end.

    `settled` is set once it has gone well with every provider that must not be ignored, but for
    those that are known from an earlier process alone: they may never come back. A
    provider that comes back says so, and then a failed attempt is made again. One that cannot
    write its state says so with every attempt, so attempts that fail are made ever less often.
    """
    pause = FIRST_PAUSE_SECONDS
    while True:
        await registry.wait_stranger()
        try:
            await settle()
        except NumalignError as error:
            _log.info("record and providers are not settled yet", error=str(error))
            if registry.lacks_recalled_alone:
                settled.set()
            await sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        else:
            settled.set()
            pause = FIRST_PAUSE_SECONDS

"""Settling is tried again whenever a provider says so, and less often the longer it fails."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from tests.unit.topology.fake_provider import FakeProvider, handle_to
from tests.unit.topology.test_registry import unheard, until

from numalign.errors import Unavailable
from numalign.process.settle_loop import (
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    settle_whenever_needed,
)
from numalign.topology.registry import ProviderRegistry


async def test_failures_are_tried_again_ever_less_often() -> None:
    provider = FakeProvider("p")
    registry = ProviderRegistry([handle_to(provider, introduced=False)], unheard)
    pauses: list[float] = []
    left = [12, 2]

    async def settle() -> None:
        # As one whose books cannot be written: each attempt makes it say something.
        provider.changed.set()
        if left[0]:
            left[0] -= 1
            raise Unavailable("hint provider p: state file p.db: disk I/O error")
        left.pop(0)
        if not left:
            provider.changed.clear()
            await asyncio.Event().wait()

    async def note(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    settled = asyncio.Event()
    registry.watch_all()
    task = asyncio.ensure_future(settle_whenever_needed(settle, registry, settled, note))
    try:
        await until(lambda: not left)
    finally:
        task.cancel()
        await registry.close()
    assert settled.is_set()
    long, short = pauses[:12], pauses[12:]
    assert long[0] == short[0] == FIRST_PAUSE_SECONDS
    assert long[-1] == LONGEST_PAUSE_SECONDS
    assert [b / a for a, b in pairwise(long[:7])] == [2] * 6
    assert len(short) == 2

"""What runs beside the servers: it ends with them, and its failure ends them."""

from __future__ import annotations

import asyncio

import pytest

from numalign.process.companions import Companions


async def test_what_still_runs_is_cancelled() -> None:
    stops: list[None] = []
    companions = Companions(lambda: stops.append(None))
    ended = asyncio.Event()

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    companions.start(forever())
    await asyncio.sleep(0)
    await companions.end()

    assert ended.is_set()
    assert stops == []


async def test_a_failure_stops_the_process_and_comes_out() -> None:
    stopped = asyncio.Event()
    companions = Companions(stopped.set)

    async def fail() -> None:
        raise ValueError("no")

    companions.start(fail())
    await asyncio.wait_for(stopped.wait(), 60)

    with pytest.raises(ValueError, match="no"):
        await companions.end()

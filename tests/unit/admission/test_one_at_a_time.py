"""A lock that says how many wait for it."""

from __future__ import annotations

import asyncio

from numalign.admission.one_at_a_time import OneAtATime


async def test_it_is_held_by_one_at_a_time_in_order() -> None:
    lock, order = OneAtATime(), []

    async def hold(name: str) -> None:
        async with lock:
            order.append(name)

    async with lock:
        tasks = [asyncio.ensure_future(hold(name)) for name in "ab"]
        await asyncio.sleep(0)
        assert lock.waiting == 2
        assert order == []
    await asyncio.gather(*tasks)

    assert order == ["a", "b"]
    assert lock.waiting == 0


async def test_who_gives_up_waits_no_more() -> None:
    lock = OneAtATime()

    async def hold() -> None:
        async with lock:
            raise AssertionError("it is held already")

    async with lock:
        task = asyncio.ensure_future(hold())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

        assert lock.waiting == 0

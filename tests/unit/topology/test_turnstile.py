"""One at a time, in order, and not too many in line."""

from __future__ import annotations

import asyncio

import pytest

from numalign.errors import QueueFull
from numalign.topology.turnstile import Turnstile


async def take(turnstile: Turnstile, name: str, order: list[str]) -> None:
    async with turnstile.turn():
        order.append(name)
        await asyncio.sleep(0)
        assert order[-1] == name


async def test_turns_come_in_order_of_arrival() -> None:
    turnstile, order = Turnstile(100), list[str]()
    await asyncio.gather(*(take(turnstile, str(number), order) for number in range(20)))
    assert order == [str(number) for number in range(20)]
    assert turnstile.waiting == 0


async def test_the_line_is_bounded() -> None:
    turnstile, order = Turnstile(1), list[str]()
    async with turnstile.turn():
        waiting = asyncio.ensure_future(take(turnstile, "waits", order))
        await asyncio.sleep(0)
        with pytest.raises(QueueFull, match="1 calls wait already"):
            await take(turnstile, "refused", order)
    await waiting
    await take(turnstile, "later", order)
    assert order == ["waits", "later"]


async def test_who_gives_up_leaves_the_line() -> None:
    turnstile, order = Turnstile(1), list[str]()
    async with turnstile.turn():
        gone = asyncio.ensure_future(take(turnstile, "gone", order))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        assert turnstile.waiting == 0
        there = asyncio.ensure_future(take(turnstile, "there", order))
        await asyncio.sleep(0)
    await there
    assert order == ["there"]


async def test_a_turn_ends_with_an_error() -> None:
    turnstile = Turnstile(1)
    with pytest.raises(ValueError, match="inside"):
        async with turnstile.turn():
            raise ValueError("inside")
    await take(turnstile, "next", [])

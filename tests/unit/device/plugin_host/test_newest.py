"""Only the newest message matters, and the first does not wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from numalign.device.plugin_host.newest import BURST, newest


async def sent(*items: object, end: Exception | None = None) -> AsyncIterator[object]:
    """Items in turn; a number is a pause in seconds."""
    for item in items:
        if isinstance(item, float):
            await asyncio.sleep(item)
        else:
            yield item
    if end is not None:
        raise end


async def test_messages_far_apart_all_come() -> None:
    assert [m async for m in newest(sent("a", 0.05, "b", 0.05, "c"), 0.0)] == ["a", "b", "c"]


async def test_of_a_flood_the_first_and_the_last() -> None:
    flood = [str(number) for number in range(BURST - 2)]

    found = [m async for m in newest(sent("first", 0.02, *flood), 0.05)]

    assert found == ["first", flood[-1]]


async def test_a_flood_without_end_is_not_read_as_fast_as_it_comes() -> None:
    read = 0

    async def flood() -> AsyncIterator[int]:
        nonlocal read
        while True:
            read += 1
            yield read

    found = []
    async with aclosing(newest(flood(), 0.01)) as messages:
        async for message in messages:
            found.append(message)
            if len(found) == 3:
                break

    assert found == sorted(found)
    # A burst for each pause that the reader and the one who listens have taken, and one ahead.
    assert read <= 5 * BURST


async def test_a_last_message_is_given_after_the_end() -> None:
    assert [m async for m in newest(sent("a", "b"), 0.01)][-1] == "b"


async def test_a_broken_stream_breaks_after_its_last_message() -> None:
    messages = newest(sent("a", end=ConnectionError("gone")), 0.0)

    assert await anext(messages) == "a"
    with pytest.raises(ConnectionError, match="gone"):
        await anext(messages)


async def test_an_empty_stream_ends() -> None:
    assert [m async for m in newest(sent(), 0.0)] == []


async def test_leaving_early_stops_reading() -> None:
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
                await asyncio.sleep(0.001)
        finally:
            closed.set()

    async with aclosing(newest(endless(), 0.0)) as messages:
        async for _ in messages:
            break

    assert closed.is_set()

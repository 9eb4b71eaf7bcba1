"""Following a shutdown's announcements, and how long it is delayed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from numalign.admission.shutdown.port import Announcer, AnnouncerGone
from numalign.admission.shutdown.watch import ShutdownWatch, Told
from numalign.errors import Unavailable


class Lock:
    def __init__(self) -> None:
        self.held = True

    def release(self) -> None:
        self.held = False


class Scripted:
    """An announcer that announces what a test puts into its queue; None: it is gone."""

    def __init__(self, *, preparing: bool = False, longest: float = 100) -> None:
        self.queue: asyncio.Queue[bool | None] = asyncio.Queue()
        self.locks: list[Lock] = []
        self.preparing = preparing
        self.longest = longest
        self.opened = 0
        self.unreachable = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Announcer]:
        if self.unreachable:
            self.unreachable -= 1
            raise AnnouncerGone("no bus")
        self.opened += 1
        yield self

    async def longest_delay(self) -> float:
        return self.longest

    async def is_preparing(self) -> bool:
        return self.preparing

    async def delay(self) -> Lock:
        self.locks.append(Lock())
        return self.locks[-1]

    async def announcements(self) -> AsyncIterator[bool]:
        while True:
            announced = await self.queue.get()
            if announced is None:
                raise AnnouncerGone("the bus is gone")
            yield announced


class World:
    """A watch over a scripted announcer; its pauses take no time."""

    def __init__(self, announcer: Scripted, grace: float = 60) -> None:
        self.announcer = announcer
        self.said: list[bool] = []
        self.pods = 1
        self.record_is_away = False
        self.pauses: list[float] = []
        told = Told(shutting_down=self.said.append, pods_left=self._pods_left)
        self.watch = ShutdownWatch(announcer.open, told, grace, self._sleep)

    async def _pods_left(self) -> bool:
        if self.record_is_away:
            raise Unavailable("topology manager")
        return self.pods > 0

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)

    async def until(self, holds: Callable[[], object]) -> None:
        """Let the watch go on until something holds."""
        async with asyncio.timeout(60):
            while not holds():  # noqa: ASYNC110 - no event says it
                await asyncio.sleep(0)


async def test_a_shutdown_is_delayed_while_pods_are_left() -> None:
    """SHUT-3."""
    world = World(Scripted())
    world.watch.start()
    await world.until(lambda: world.announcer.locks)
    await world.announcer.queue.put(True)
    await world.until(lambda: len(world.pauses) > 3)
    held_while_pods_are_left = world.announcer.locks[0].held
    world.pods = 0
    await world.until(lambda: not world.announcer.locks[0].held)
    await world.watch.close()

    assert held_while_pods_are_left
    assert world.said == [False, True, False]


async def test_a_shutdown_that_is_taken_back() -> None:
    """SHUT-3: the lock is taken anew, for the next one."""
    world = World(Scripted())
    world.watch.start()
    await world.announcer.queue.put(True)
    await world.announcer.queue.put(False)
    await world.until(lambda: len(world.announcer.locks) == 2)
    said = list(world.said)
    locks = [lock.held for lock in world.announcer.locks]
    await world.watch.close()

    assert said == [False, True, False]
    assert locks == [False, True]
    assert not world.announcer.locks[1].held


@pytest.mark.parametrize("record_is_away", [False, True])
async def test_the_delay_ends_with_the_grace_periods(record_is_away: bool) -> None:
    world = World(Scripted(), grace=0.02)
    world.record_is_away = record_is_away
    world.watch.start()
    await world.announcer.queue.put(True)
    await world.until(lambda: world.announcer.locks and not world.announcer.locks[0].held)
    await world.watch.close()

    assert world.said[:2] == [False, True]


async def test_a_shutdown_that_was_announced_before() -> None:
    """It is too late for a lock then."""
    world = World(Scripted(preparing=True))
    world.watch.start()
    await world.until(lambda: world.said)
    await world.watch.close()

    assert world.said == [True, False]
    assert world.announcer.locks == []


async def test_an_announcer_that_is_away_comes_back() -> None:
    announcer = Scripted()
    announcer.unreachable = 7
    world = World(announcer)
    world.watch.start()
    await world.until(lambda: world.announcer.opened == 1)
    pauses = list(world.pauses)
    await announcer.queue.put(None)
    await world.until(lambda: world.announcer.opened == 2)
    await world.watch.close()

    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    assert [lock.held for lock in announcer.locks] == [False, False]


async def test_the_shutdown_stays_known_while_the_announcer_is_away() -> None:
    announcer = Scripted()
    world = World(announcer)
    world.watch.start()
    await announcer.queue.put(True)
    await world.until(lambda: True in world.said)
    announcer.unreachable = 10_000
    await announcer.queue.put(None)
    await world.until(lambda: world.announcer.unreachable < 9_990)

    assert world.said == [False, True]
    await world.watch.close()

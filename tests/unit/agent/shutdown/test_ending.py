"""Pods end group by group when the node shuts down, and no more when it does not after all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.unit.agent.made import pod

from numalign.admission.handlers.node_shutdown import GraceGroup
from numalign_agent.pod import AgentPod
from numalign_agent.shutdown.ending import PodEnding
from numalign_agent.workers.work import Kill
from numalign_agent.workers.workers import KillTimedOut

CRITICAL = 2_000_000_000
LONG = 60.0


class Workers:
    """Plays the workers: a pod has ended when the test says so."""

    def __init__(self) -> None:
        self.killed: list[str] = []
        self.ended: dict[str, asyncio.Event] = {}
        self.changed = asyncio.Event()

    async def kill(self, of: AgentPod, kill: Kill) -> None:
        self.killed.append(f"{of.name} {kill.grace}")
        self.changed.set()
        await self.ended.setdefault(of.name, asyncio.Event()).wait()
        if of.name == "stubborn":
            raise KillTimedOut("timeout waiting to kill pod")

    def end(self, name: str) -> None:
        self.ended.setdefault(name, asyncio.Event()).set()

    async def until_killed(self, *expected: str) -> None:
        async with asyncio.timeout(LONG):
            while self.killed != list(expected):
                await self.changed.wait()
                self.changed.clear()


class World:
    def __init__(self, low: float = LONG, high: float = LONG) -> None:
        self.workers = Workers()
        self.pods = [pod("system", priority=CRITICAL), pod("web"), pod("stubborn")]
        playing: Any = self.workers
        groups = (GraceGroup(0, low), GraceGroup(CRITICAL, high))
        self.ending = PodEnding(playing, lambda: self.pods, groups)


@asynccontextmanager
async def world(**seconds: float) -> AsyncIterator[World]:
    on = World(**seconds)
    try:
        yield on
    finally:
        await on.ending.close()


async def test_the_next_pods_wait_for_the_ones_before() -> None:
    async with world() as on:
        on.ending.announced(True)
        on.ending.announced(True)
        await on.workers.until_killed("web 60", "stubborn 60")
        on.workers.end("web")
        await asyncio.sleep(0)
        assert len(on.workers.killed) == 2
        on.workers.end("stubborn")
        await on.workers.until_killed("web 60", "stubborn 60", "system 60")


async def test_they_do_not_wait_longer_than_the_group_has() -> None:
    async with world(low=0) as on:
        on.ending.announced(True)
        await on.workers.until_killed("web 0", "stubborn 0", "system 60")


async def test_a_shutdown_that_is_taken_back_ends_no_more_pods() -> None:
    async with world() as on:
        on.ending.announced(False)
        on.ending.announced(True)
        await on.workers.until_killed("web 60", "stubborn 60")
        on.ending.announced(False)
        on.workers.end("web")
        on.workers.end("stubborn")
        for _ in range(10):
            await asyncio.sleep(0)
        assert on.workers.killed == ["web 60", "stubborn 60"]

        on.ending.announced(True)
        await on.workers.until_killed("web 60", "stubborn 60", "web 60", "stubborn 60", "system 60")


async def test_whether_pods_are_left() -> None:
    async with world() as on:
        assert await on.ending.pods_left()
        on.pods.clear()
        assert not await on.ending.pods_left()

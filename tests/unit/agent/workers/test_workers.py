"""Workers over operations that tests let end: order, interruption, turns, kills."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.unit.agent.made import pod

from numalign.telemetry.metrics import Metrics
from numalign_agent.metrics import AGENT
from numalign_agent.pod import AgentPod
from numalign_agent.workers import workers as module
from numalign_agent.workers.port import OperationFailed
from numalign_agent.workers.work import Kill, PodWork, Update, UpdateKind, WorkState
from numalign_agent.workers.work_queue import WorkQueue
from numalign_agent.workers.workers import KillTimedOut, Workers


class Scripted:
    """Operations that write down what is called, and do what they are told."""

    def __init__(self) -> None:
        self.called: list[tuple[str, str]] = []
        self.interrupted: list[str] = []
        self.over: set[str] = set()
        self.failing: dict[str, Exception] = {}
        self.held = asyncio.Event()
        self.held.set()

    async def sync(self, work: PodWork) -> bool:
        await self._note("sync", work)
        return work.uid in self.over

    async def terminate(self, work: PodWork) -> None:
        await self._note("terminate", work)

    async def finish(self, work: PodWork) -> None:
        await self._note("finish", work)

    async def _note(self, name: str, work: PodWork) -> None:
        self.called.append((name, work.pod.name))
        try:
            if name == "sync":
                await self.held.wait()
        except asyncio.CancelledError:
            self.interrupted.append(work.pod.name)
            raise
        failure = self.failing.pop(name, None)
        if failure is not None:
            raise failure


class World:
    def __init__(self) -> None:
        self.operations = Scripted()
        self.queue = WorkQueue()
        self.ended: list[str] = []
        self.workers = Workers(
            self.operations,
            self.queue,
            clock=lambda: 1000.0,
            sync_every=60.0,
            is_idle=lambda _: True,
            ended=self.ended.append,
            metrics=Metrics(AGENT, enabled=False),
        )

    def tell(self, of: AgentPod, kind: UpdateKind = UpdateKind.CREATE, **fields: Any) -> None:
        self.workers.update(Update(kind, of, **fields))

    def state(self, of: AgentPod) -> WorkState | None:
        work = self.workers.work(of.uid)
        return None if work is None else work.state

    async def settle(self) -> None:
        for _ in range(30):
            await asyncio.sleep(0)


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    made = World()
    try:
        yield made
    finally:
        await made.workers.close()


async def test_a_life_from_beginning_to_end() -> None:
    async with world() as on:
        on.tell(pod("a"))
        await on.settle()
        assert on.operations.called == [("sync", "a")]
        assert on.state(pod("a")) is WorkState.SYNC

        on.operations.over.add("uid-a")
        on.tell(pod("a"), UpdateKind.SYNC)
        await on.settle()

        assert on.operations.called[1:] == [("sync", "a"), ("terminate", "a"), ("finish", "a")]
        assert on.state(pod("a")) is WorkState.FINISHED
        assert set(on.ended) == {"uid-a"}
        assert on.workers.is_finished("uid-a")


async def test_a_kill_interrupts_and_is_waited_for() -> None:
    async with world() as on:
        on.operations.held.clear()
        on.tell(pod("a"))
        await on.settle()
        killing = asyncio.create_task(on.workers.kill(pod("a"), Kill(grace=1)))
        await on.settle()

        assert on.operations.interrupted == ["a"]
        assert on.operations.called == [("sync", "a"), ("terminate", "a"), ("finish", "a")]
        await killing
        await on.workers.kill(pod("a"), Kill())  # terminated already: answered at once


async def test_a_kill_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "kill_wait", lambda *_: 0.01)
    async with world() as on:
        on.operations.failing["terminate"] = OperationFailed("it does not end")
        with pytest.raises(KillTimedOut, match="timeout waiting to kill pod"):
            await on.workers.kill(pod("a"), Kill())

        assert on.state(pod("a")) is WorkState.TERMINATING


async def test_a_pod_that_is_not_known_can_be_killed() -> None:
    async with world() as on:
        await on.workers.kill(pod("a"), Kill())

        assert ("terminate", "a") in on.operations.called


@pytest.mark.parametrize(
    ("failure", "least", "most"),
    [
        (OperationFailed("no"), 10.0, 15.0),
        (OperationFailed("no", 2.0), 2.0, 3.0),
        (ValueError("a fault of ours"), 10.0, 15.0),
    ],
)
async def test_failures_are_tried_again_later(
    failure: Exception, least: float, most: float
) -> None:
    async with world() as on:
        on.operations.failing["sync"] = failure
        now = asyncio.get_running_loop().time()
        on.tell(pod("a"))
        await on.settle()

        assert on.queue.take_due(now + least) == ()
        assert on.queue.take_due(now + most + 60) == ("uid-a",)
        assert on.state(pod("a")) is WorkState.SYNC


async def test_static_pods_of_one_name_do_not_run_together() -> None:
    """WRK-11."""
    old = pod("web", source="file")
    new = AgentPod({**old.document, "metadata": {**old.metadata, "uid": "uid-new"}})
    async with world() as on:
        on.tell(old)
        on.tell(new)
        await on.settle()
        assert on.operations.called == [("sync", "web")]

        on.tell(old, UpdateKind.KILL)
        await on.settle()

        assert on.operations.called == [
            ("sync", "web"),
            ("terminate", "web"),
            ("finish", "web"),
            ("sync", "web"),
        ]
        assert on.state(new) is WorkState.SYNC


async def test_a_finished_pod_begins_anew_only_after_housekeeping() -> None:
    """WRK-8, trap 31."""
    async with world() as on:
        on.tell(pod("a"))
        on.tell(pod("a"), UpdateKind.KILL)
        on.tell(pod("a"))  # while it ends
        await on.settle()
        assert on.state(pod("a")) is WorkState.FINISHED

        assert on.workers.prune({"uid-a"}, set()) == ("uid-a",)
        assert on.state(pod("a")) is None
        on.tell(pod("a"))
        await on.settle()

        assert on.state(pod("a")) is WorkState.SYNC


async def test_orphans_are_ended() -> None:
    async with world() as on:
        on.tell(pod("a"))
        await on.settle()
        assert on.workers.may_run("uid-b")
        assert on.workers.prune(set(), set()) == ()
        await on.settle()

        assert on.state(pod("a")) is WorkState.FINISHED
        assert on.workers.prune(set(), set()) == ("uid-a",)
        assert not on.workers.may_run("uid-a")
        assert on.workers.content_goes("uid-a")

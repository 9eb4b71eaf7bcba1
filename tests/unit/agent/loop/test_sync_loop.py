"""The sync loop over parts that write down what they are asked (LOOP-1 to LOOP-8)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.unit.agent.made import pod

from numalign_agent.changes import Operation, PodChange
from numalign_agent.loop import sync_loop as module
from numalign_agent.loop.channels import Channel, Channels
from numalign_agent.loop.sources_ready import SourcesReady
from numalign_agent.loop.sync_loop import LoopChannels, LoopParts, SyncLoop
from numalign_agent.pleg.changes import EventKind, LifecycleEvent
from numalign_agent.pod import AgentPod
from numalign_agent.probes.results import ProbeChange, ProbeKey, ProbeKind
from numalign_agent.runners.port import RunnerFailed
from numalign_agent.runners.recorder import RecorderRunner


class Runtime(RecorderRunner):
    why: str | None = None
    silent = False

    async def not_ready(self) -> str | None:
        if self.silent:
            raise RunnerFailed("no answer")
        return self.why


class World:
    def __init__(self, sources: SourcesReady | None = None) -> None:
        self.did: list[Any] = []
        self.channels = LoopChannels()
        self.runtime = Runtime()
        self.pleg_problem: str | None = None
        self.pods = {"uid-a": pod("a")}
        self.due: list[str] = []
        self.sources = sources or SourcesReady(["file"], lambda: {"file"})
        self.loop = SyncLoop(
            LoopParts(
                channels=self.channels,
                handlers=self,
                clean=self.clean,
                sources=self.sources,
                runner=self.runtime,
                pods=lambda: self.pods,
                due=lambda: self.due,
                pleg_problem=lambda: self.pleg_problem,
                remove_dead=lambda uid: self.did.append(("remove dead", uid)),
            ),
            60.0,
        )

    def handle(self, change: PodChange) -> None:
        self.did.append((change.operation, change.source))

    def sync(self, pod: AgentPod) -> None:
        self.did.append(("sync", pod.uid))

    async def clean(self) -> None:
        self.did.append("clean")

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not true():  # noqa: ASYNC110 - no event says it
                await asyncio.sleep(0.001)

    async def running(self, then: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.create_task(self.loop.run())
        try:
            await then()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def probe(kind: ProbeKind, *, succeeded: bool) -> ProbeChange:
    return ProbeChange("uid-a", ProbeKey("c", kind), succeeded)


@pytest.mark.parametrize(
    ("channel", "item", "did"),
    [
        pytest.param("pleg", LifecycleEvent("uid-a", EventKind.CONTAINER_STARTED, "c"),
                     [("sync", "uid-a")], id="LOOP-4: started"),
        pytest.param("pleg", LifecycleEvent("uid-a", EventKind.CONTAINER_DIED, "c"),
                     [("sync", "uid-a"), ("remove dead", "uid-a")], id="LOOP-4: died"),
        pytest.param("pleg", LifecycleEvent("uid-a", EventKind.CONTAINER_REMOVED, "c"),
                     [], id="LOOP-4: removed"),
        pytest.param("pleg", LifecycleEvent("uid-b", EventKind.CONTAINER_STARTED, "c"),
                     [], id="LOOP-4: nobody's pod"),
        pytest.param("liveness", probe(ProbeKind.LIVENESS, succeeded=True), [], id="alive"),
        pytest.param("liveness", probe(ProbeKind.LIVENESS, succeeded=False),
                     [("sync", "uid-a")], id="not alive"),
        pytest.param("readiness", probe(ProbeKind.READINESS, succeeded=True),
                     [("sync", "uid-a")], id="ready"),
        pytest.param("startup", probe(ProbeKind.STARTUP, succeeded=False),
                     [("sync", "uid-a")], id="not started"),
        pytest.param("devices", ("uid-a", "uid-gone"), [("sync", "uid-a")], id="devices"),
    ],
)  # fmt: skip
async def test_what_comes(channel: str, item: Any, did: list[Any]) -> None:
    world = World()
    last = PodChange(Operation.ADD, "file", ())

    async def then() -> None:
        await getattr(world.channels, channel).put(item)
        await world.until(lambda: getattr(world.channels, channel).empty())
        await world.channels.config.put(last)
        await world.until(lambda: (Operation.ADD, "file") in world.did)

    await world.running(then)
    assert world.did[:-1] == did


async def test_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """LOOP-5, LOOP-6: no housekeeping before the loop has seen every source."""
    monkeypatch.setattr(module, "SYNC_SECONDS", 0.01)
    monkeypatch.setattr(module, "HOUSEKEEPING_SECONDS", 0.01)
    world = World()
    world.due = ["uid-a"]

    async def then() -> None:
        await world.until(lambda: world.did.count(("sync", "uid-a")) > 3)
        assert "clean" not in world.did
        await world.channels.config.put(PodChange(Operation.ADD, "file", ()))
        await world.until(lambda: "clean" in world.did)

    await world.running(then)


@pytest.mark.parametrize(
    ("trouble", "expected"),
    [
        ({"pleg_problem": "no listing"}, "PLEG is not healthy: no listing"),
        ({"why": "no disk"}, "no disk"),
        ({"silent": True}, "container runtime status check may not have completed yet"),
    ],
)
async def test_nothing_is_taken_while_the_runtime_has_errors(
    trouble: dict[str, Any], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOOP-8, and LOOP-9: such a pass is not seen by the monitor."""
    monkeypatch.setattr(module, "RUNTIME_SECONDS", 0.01)
    world = World()
    for name, value in trouble.items():
        setattr(world if name == "pleg_problem" else world.runtime, name, value)

    async def then() -> None:
        await world.until(lambda: world.loop.not_ready() == expected)
        await world.channels.config.put(PodChange(Operation.ADD, "file", ()))
        await asyncio.sleep(0.15)
        assert world.did == []
        assert world.loop.problem() is None

        world.pleg_problem, world.runtime.why, world.runtime.silent = None, None, False
        await world.until(lambda: bool(world.did))
        assert world.loop.not_ready() is None

    await world.running(then)


async def test_one_of_several_is_chosen_at_random() -> None:
    """LOOP-1, trap 17."""
    first: Channel[int] = Channel(50)
    second: Channel[int] = Channel(50)
    channels = Channels((first, second))
    for number in range(40):
        first.offer(number)
        second.offer(number)
    taken = [(await channels.take())[0] for _ in range(40)]

    assert 0 < taken.count(first) < 40


async def test_a_channel_that_fills_wakes_the_loop_and_has_a_bound() -> None:
    channel: Channel[int] = Channel(1)
    channels = Channels((Channel(1), channel))
    taking = asyncio.create_task(channels.take())
    await asyncio.sleep(0)
    await channel.put(7)

    assert await taking == (channel, 7)
    assert channel.offer(1)
    assert not channel.offer(2)

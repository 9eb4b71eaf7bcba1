"""Looking at a runtime: what is sent, what is lost, and what happens when it does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.unit.agent.made import pod
from tests.waiting import until

from numalign.telemetry.metrics import Metrics
from numalign_agent.metrics import AGENT
from numalign_agent.pleg.changes import LifecycleEvent
from numalign_agent.pleg.generator import LifecycleEvents
from numalign_agent.runners.port import Placement, RunnerFailed, RuntimePod
from numalign_agent.runners.recorder import RecorderRunner


class Silent(RecorderRunner):
    fails = True

    async def list_pods(self) -> Sequence[RuntimePod]:
        if self.fails:
            raise RunnerFailed("no answer")
        return await super().list_pods()


def events_of(runner: RecorderRunner, sent: list[LifecycleEvent], room: int = 9) -> LifecycleEvents:
    def send(event: LifecycleEvent) -> bool:
        if len(sent) >= room:
            return False
        sent.append(event)
        return True

    return LifecycleEvents(runner, send, Metrics(AGENT, enabled=True))


async def started(runner: RecorderRunner, name: str = "a") -> str:
    container = await runner.create_container(pod(name), "c", 0, Placement())
    await runner.start_container(container)
    return container


async def test_a_container_that_comes_and_goes() -> None:
    runner, sent = RecorderRunner(), list[LifecycleEvent]()
    pleg = events_of(runner, sent)
    assert pleg.problem() == "pleg has yet to be successful"
    await pleg.relist()
    assert pleg.problem() is None

    container = await started(runner)
    await pleg.relist()
    assert pleg.runs("uid-a")
    runner.exit(container, 1)
    await pleg.relist()
    assert pleg.is_idle("uid-a")
    await runner.remove_container(container)
    await pleg.relist()

    assert [event.kind.value for event in sent] == [
        "ContainerStarted",
        "ContainerDied",
        "ContainerRemoved",
    ]


async def test_what_a_runner_tells_is_looked_at_before_the_next_listing() -> None:
    runner, sent = RecorderRunner(), list[LifecycleEvent]()
    pleg = events_of(runner, sent)
    looking = asyncio.create_task(pleg.run())
    await asyncio.sleep(0.01)
    await started(runner)
    await until(lambda: sent)
    looking.cancel()

    assert [event.kind.value for event in sent] == ["ContainerStarted"]


async def test_a_runtime_that_does_not_answer_changes_nothing() -> None:
    runner, sent = Silent(), list[LifecycleEvent]()
    pleg = events_of(runner, sent)
    await pleg.relist()
    assert pleg.problem() == "pleg has yet to be successful"

    runner.fails = False
    await started(runner)
    await pleg.relist()
    runner.fails = True
    await pleg.relist()

    assert pleg.runs("uid-a")
    assert len(sent) == 1


async def test_events_that_nobody_has_room_for_are_counted() -> None:
    runner, sent = RecorderRunner(), list[LifecycleEvent]()
    metrics = Metrics(AGENT, enabled=True)
    pleg = LifecycleEvents(runner, lambda _: False, metrics)
    await started(runner)
    await pleg.relist()

    assert sent == []
    assert "kubelet_pleg_discard_events 1.0" in metrics.text()

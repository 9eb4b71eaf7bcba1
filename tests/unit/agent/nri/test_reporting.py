"""What people are told, and what is asked of an API server: neither holds anybody up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.agent.nri.made_up import FakeApi

from numalign.telemetry.metrics import Metrics
from numalign_agent.api.errors import Refused
from numalign_agent.nri.evictions import Evictions
from numalign_agent.nri.metrics import NRI
from numalign_agent.nri.reporter import Reporter
from numalign_agent.pod import AgentPod

POD = AgentPod({"metadata": {"uid": "u", "name": "web", "namespace": "default"}})


class Unwilling(FakeApi):
    """An API that does not do what it is asked the first times."""

    def __init__(self, refusals: int) -> None:
        super().__init__()
        self.refusals = refusals

    async def evict(self, namespace: str, name: str, uid: str) -> bool:
        if self.refusals:
            self.refusals -= 1
            raise Refused(429, "TooManyRequests", "disruption budget")
        return await super().evict(namespace, name, uid)

    async def warn(self, about: AgentPod, reason: str, message: str) -> None:
        if self.refusals:
            self.refusals -= 1
            raise Refused(403, "Forbidden", "events")
        await super().warn(about, reason, message)


async def test_an_eviction_that_a_budget_holds_up_is_asked_for_again() -> None:
    api, slept = Unwilling(3), []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    evictions = Evictions(api, sleep)
    evictions.ask(POD, "no room")
    evictions.ask(POD, "no room")
    async with asyncio.timeout(60):
        while not api.evicted:  # noqa: ASYNC110 - it is a task of its own
            await asyncio.sleep(0)

    assert api.evicted == ["u"]
    assert slept == [1.0, 2.0, 4.0]


async def test_an_eviction_without_an_api_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    Evictions(None).ask(POD, "no room")

    assert "no API server is configured" in capsys.readouterr().err


async def test_an_eviction_is_given_up_in_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    async def sleep(_: float) -> None:
        return

    evictions = Evictions(Unwilling(1000), sleep)
    evictions.ask(POD, "no room")
    for _ in range(100):
        await asyncio.sleep(0)

    assert "could not be evicted" in capsys.readouterr().err


async def shown(api: FakeApi | None, **calls: tuple[Any, ...]) -> str:
    metrics = Metrics(NRI, enabled=True)
    reporter = Reporter(metrics, api)
    for name, arguments in calls.items():
        getattr(reporter, name)(POD, *arguments)
    running = asyncio.create_task(reporter.run())
    for _ in range(20):
        await asyncio.sleep(0)
    running.cancel()
    return metrics.text()


async def test_events_are_shown_and_counted() -> None:
    api = FakeApi()
    text = await shown(
        api,
        runs_shared=("TopologyAffinityError", "no room"),
        unpinned=("app", "it may use CPUs 0-3"),
        refused_update=("app", "it may use CPUs 0-3"),
        decided=("admitted",),
    )

    assert [(reason, message) for _, reason, message in api.warnings] == [
        ("TopologyAffinityError", "no room; the pod runs on the shared CPUs"),
        ("ContainerUnpinned", "Container app: it may use CPUs 0-3"),
        ("PlacementFailed", "Container app: it may use CPUs 0-3"),
    ]
    assert 'decisions_total{outcome="shared"} 1.0' in text
    assert 'decisions_total{outcome="admitted"} 1.0' in text
    assert "unpinned_containers_total 1.0" in text


async def test_an_event_that_is_not_taken_is_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    api = Unwilling(1)
    await shown(api, unpinned=("a", "first"), refused_update=("a", "second"))

    assert [message for _, _, message in api.warnings] == ["Container a: second"]
    assert "bind this account to a ClusterRole with that right" in capsys.readouterr().err


async def test_without_an_api_there_is_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    text = await shown(None, unpinned=("app", "it may use CPUs 0-3"))

    assert "unpinned_containers_total 1.0" in text
    assert "it may use CPUs 0-3" in capsys.readouterr().err

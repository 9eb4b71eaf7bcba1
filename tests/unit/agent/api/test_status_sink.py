"""Statuses and events sent to an API server (STAT-2 to STAT-4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from tests.integration.fake_api.server import FakeApiServer
from tests.unit.agent.api.pods import Answers, static_pod, until

from numalign_agent.api.server import ApiServer
from numalign_agent.api.status_sink import ApiStatusSink
from numalign_agent.pod import AgentPod
from numalign_agent.status.port import EventType

RUNNING = {"phase": "Running"}


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
async def sink(api: ApiServer, answers: Answers) -> AsyncIterator[ApiStatusSink]:
    made = ApiStatusSink(api, "n", answers, recheck_seconds=0.05)
    task = asyncio.create_task(made.run())
    yield made
    assert not task.done()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def created(fake: FakeApiServer, answers: Answers, name: str = "web", **spec: Any) -> AgentPod:
    made = AgentPod(
        fake.store.create("pods", "default", {"metadata": {"name": name}, "spec": spec})
    )
    pod = made.annotated(**{"kubernetes.io/config.source": "api"})
    answers.pods[pod.uid] = pod
    return pod


def status(fake: FakeApiServer, name: str = "web") -> Any:
    return fake.store.get("pods", "default", name).get("status", {})


async def test_a_status_is_sent(fake: FakeApiServer, answers: Answers, sink: ApiStatusSink) -> None:
    pod = created(fake, answers)
    sink.set_status(pod, RUNNING)
    await until(lambda: status(fake) == RUNNING)

    assert sum(request.startswith("PATCH") for request in fake.requests) == 1


async def test_a_pod_of_another_uid_is_left_alone(
    fake: FakeApiServer, answers: Answers, sink: ApiStatusSink
) -> None:
    old = created(fake, answers)
    fake.store.delete("pods", "default", "web", {"gracePeriodSeconds": 0})
    created(fake, answers)
    sink.set_status(old, RUNNING)
    await until(lambda: len(fake.requests) >= 1)

    assert status(fake) == {}
    assert not any(request.startswith("PATCH") for request in fake.requests)


async def test_a_pod_that_is_gone_is_no_trouble(
    fake: FakeApiServer, answers: Answers, sink: ApiStatusSink
) -> None:
    pod = created(fake, answers)
    fake.store.delete("pods", "default", "web", {"gracePeriodSeconds": 0})
    sink.set_status(pod, RUNNING)
    await until(lambda: len(fake.requests) >= 1)

    assert sink.problems() == {}


async def test_a_static_pod_is_shown_by_its_mirror(
    fake: FakeApiServer, answers: Answers, sink: ApiStatusSink
) -> None:
    static = static_pod()
    answers.pods[static.uid] = static
    sink.set_status(static, RUNNING)
    await asyncio.sleep(0.02)
    assert fake.requests == []

    mirror = AgentPod(fake.store.create("pods", "default", {"metadata": {"name": static.name}}))
    answers.mirrors[static.full_name] = mirror
    await until(lambda: status(fake, static.name) == RUNNING)


async def test_an_end_is_told_once_nothing_runs_and_then_the_pod_is_deleted(
    fake: FakeApiServer, answers: Answers, sink: ApiStatusSink
) -> None:
    pod = created(fake, answers)
    fake.store.delete("pods", "default", "web", {"gracePeriodSeconds": 30})
    answers.running = {pod.uid}
    sink.set_status(pod, {"phase": "Failed", "reason": "r"})
    await until(lambda: bool(fake.requests))
    assert status(fake) == {}

    answers.running = set()
    sink.recheck(pod.uid)
    await until(lambda: status(fake).get("phase") == "Failed")

    # Only when the source says so, too, and the worker is done (STAT-4).
    answers.finished = {pod.uid}
    echoed = AgentPod(fake.store.get("pods", "default", "web"))
    answers.pods[pod.uid] = echoed
    await until(lambda: fake.store.all("pods") == [])


async def test_what_somebody_else_overwrote_is_told_again(
    fake: FakeApiServer, answers: Answers, sink: ApiStatusSink
) -> None:
    pod = created(fake, answers)
    sink.set_status(pod, RUNNING)
    await until(lambda: status(fake) == RUNNING)
    changed = fake.store.patch("pods", "default", "web", {"status": {"phase": "Unknown"}})
    answers.pods[pod.uid] = AgentPod(changed)
    await until(lambda: status(fake) == RUNNING)


async def test_a_status_waits_for_a_server_that_is_away(
    fake: FakeApiServer, answers: Answers, sink: ApiStatusSink
) -> None:
    pod = created(fake, answers)
    await fake.stop()
    sink.set_status(pod, RUNNING)
    sink.event(pod, EventType.NORMAL, "R", "one")
    await until(lambda: list(sink.problems()) == [pod.uid])
    await fake.start()
    await until(lambda: status(fake) == RUNNING)
    await until(lambda: sink.problems() == {})
    await until(lambda: len(fake.store.all("events")) == 1)


async def test_nothing_is_sent_of_a_pod_that_is_forgotten(
    fake: FakeApiServer, answers: Answers, sink: ApiStatusSink
) -> None:
    pod = created(fake, answers)
    fake.faults.fail = [503]
    sink.set_status(pod, RUNNING)
    await until(lambda: list(sink.problems()) == [pod.uid])
    sink.forget(pod.uid)
    assert sink.problems() == {}
    asked = len(fake.requests)
    await asyncio.sleep(0.3)
    # One may have been on its way.
    assert len(fake.requests) <= asked + 1


async def test_an_event_that_repeats_is_counted(
    fake: FakeApiServer, answers: Answers, sink: ApiStatusSink
) -> None:
    pod = created(fake, answers)
    for _ in range(3):
        sink.event(pod, EventType.WARNING, "R", "again")
    sink.event(pod, EventType.NORMAL, "R", "other")
    await until(lambda: len(fake.store.all("events")) == 2)

    again, other = fake.store.all("events")
    assert (again["count"], other["count"]) == (3, 1)
    assert again["involvedObject"]["uid"] == pod.uid
    assert (again["type"], again["reason"], again["message"]) == ("Warning", "R", "again")

    fake.store.delete("events", "default", again["metadata"]["name"], {})
    sink.event(pod, EventType.WARNING, "R", "again")
    await until(lambda: len(fake.store.all("events")) == 2)


async def test_an_event_that_is_not_taken_does_not_block_others(
    fake: FakeApiServer, answers: Answers, sink: ApiStatusSink
) -> None:
    pod = created(fake, answers)
    fake.faults.fail = [403]
    sink.event(pod, EventType.NORMAL, "R", "refused")
    sink.event(pod, EventType.NORMAL, "R", "taken")
    await until(lambda: len(fake.store.all("events")) == 1)

    assert fake.store.all("events")[0]["message"] == "taken"


async def test_it_ends_although_a_status_comes_at_the_same_moment(
    fake: FakeApiServer, answers: Answers, api: ApiServer
) -> None:
    sink = ApiStatusSink(api, "n", answers)
    task = asyncio.create_task(sink.run())
    sink.set_status(created(fake, answers), RUNNING)
    await until(lambda: status(fake) == RUNNING)
    await asyncio.sleep(0.05)

    sink.set_status(created(fake, answers, "other"), RUNNING)
    task.cancel()

    async with asyncio.timeout(60):
        await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()

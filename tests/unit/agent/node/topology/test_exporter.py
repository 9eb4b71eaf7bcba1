"""When the object is written: after changes, not too often, and now and then in any case."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.unit.agent.api.pods import until
from tests.unit.agent.node.topology.nodes import machine, resources

from numalign.telemetry.metrics import Metrics
from numalign.v1 import types_pb2 as pb
from numalign_agent.api.errors import Refused, Unreachable
from numalign_agent.backoff import Backoff
from numalign_agent.node.metrics import NODE, TOPOLOGY_CONFIRMED, TOPOLOGY_CURRENT
from numalign_agent.node.settings import TopologySettings
from numalign_agent.node.topology.exporter import TopologyExporter
from numalign_agent.node.topology.node_facts import NodeFacts, NotTold
from numalign_agent.node.topology.objects import Policy
from numalign_agent.node.topology.published import NoTopologyKind

FAST = TopologySettings(interval=0.001, heartbeat=1000.0)


class Services:
    """What the services say."""

    def __init__(self) -> None:
        self.pods: list[str] = []
        self.fails: list[str] = []
        self.reads = 0
        self.forgotten = 0
        self._told: asyncio.Queue[None] = asyncio.Queue()

    def admit(self, name: str) -> None:
        """One more pod."""
        self.pods.append(name)
        self._told.put_nowait(None)

    def say(self) -> None:
        """Something may have changed."""
        self._told.put_nowait(None)

    @property
    def all_told(self) -> bool:
        """Whether whoever follows has heard of all."""
        return self._told.empty()

    async def changes(self) -> AsyncIterator[None]:
        while True:
            await self._told.get()
            yield

    async def read(self) -> NodeFacts:
        self.reads += 1
        if self.fails:
            raise NotTold(self.fails.pop(0))
        records = [
            pb.AdmissionRecord(
                namespace="default",
                name=name,
                qos_class="Guaranteed",
                resources=pb.PodResources(
                    containers=[
                        pb.ContainerResources(
                            container="c", amounts=pb.ResourceAmounts(requests={"memory": "1Gi"})
                        )
                    ]
                ),
            )
            for name in self.pods
        ]
        policy = Policy(policy="none", scope="none", options={})
        return NodeFacts(
            machine=machine(), policy=policy, resources=resources(), admissions=tuple(records)
        )

    def forget_machine(self) -> None:
        self.forgotten += 1


class Object:
    """What was written, and whether it was looked at first."""

    def __init__(self) -> None:
        self.written: list[tuple[str, bool]] = []
        self.fails: list[Exception] = []
        self.deleted = 0
        self._made: Mapping[str, Any] | None = None

    def is_written(self, made: Mapping[str, Any]) -> bool:
        return self._made == made

    async def write(self, made: Mapping[str, Any], *, look: bool) -> None:
        if self.fails:
            raise self.fails.pop(0)
        self._made = made
        values = {each["name"]: each["value"] for each in made["attributes"]}
        self.written.append((values["nodeTopologyPodsFingerprint"], look))

    async def delete(self) -> None:
        if self.fails:
            raise self.fails.pop(0)
        self.deleted += 1


@asynccontextmanager
async def running(
    services: Services,
    published: Object,
    settings: TopologySettings = FAST,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    metrics: Metrics | None = None,
    now: Callable[[], float] = time.time,
) -> AsyncIterator[TopologyExporter]:
    exporter = TopologyExporter(
        services,  # type: ignore[arg-type]
        published,  # type: ignore[arg-type]
        "node-1",
        settings,
        metrics or Metrics(NODE, enabled=True),
        Backoff(0.001, 0.01),
        sleep,
        now,
    )
    task = asyncio.create_task(exporter.run())
    try:
        yield exporter
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_each_change_is_written_and_nothing_else() -> None:
    services, published = Services(), Object()
    async with running(services, published) as exporter:
        await until(lambda: len(published.written) == 1)
        services.say()
        await until(lambda: services.reads == 2)
        services.admit("a")
        await until(lambda: len(published.written) == 2)

        assert exporter.problem() is None
    first, second = published.written
    assert first[0] != second[0]
    assert [first[1], second[1]] == [True, False]


async def test_changes_that_follow_each_other_are_written_together() -> None:
    services, published = Services(), Object()
    turns, waited = asyncio.Semaphore(0), []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        await turns.acquire()

    settings = TopologySettings(interval=5.0, heartbeat=1000.0)
    async with running(services, published, settings, sleep):
        await until(lambda: len(waited) == 1)
        for number in range(20):
            services.admit(f"p{number}")
        await until(lambda: services.all_told)
        turns.release()
        await until(lambda: len(waited) == 2)

    assert waited == [5.0, 5.0]
    assert len(published.written) == 2


async def test_now_and_then_it_is_looked_at() -> None:
    services, published = Services(), Object()
    async with running(services, published, TopologySettings(interval=0.001, heartbeat=0.01)):
        await until(lambda: len(published.written) >= 3)

    assert all(look for _, look in published.written)
    assert services.forgotten >= 3


@pytest.mark.parametrize(
    ("error", "said"),
    [
        pytest.param(Unreachable("GET x: no answer in time"), "GET x: no answer", id="away"),
        pytest.param(NoTopologyKind("there is no such kind"), "there is no such kind", id="kind"),
        pytest.param(
            Refused(403, "Forbidden", "no"),
            "bind it to the ClusterRole numalign-topology",
            id="403",
        ),
    ],
)
async def test_what_stands_in_the_way_is_said_until_it_is_gone(error: Exception, said: str) -> None:
    services, published = Services(), Object()
    published.fails = [error] * 3
    problems = set()
    async with running(services, published) as exporter:
        before = exporter.problem()
        while not published.written:
            problems.add(exporter.problem())
            await asyncio.sleep(0)

        assert before == "not written yet"
        assert exporter.problem() is None
    assert any(said in (problem or "") for problem in problems)
    assert published.written[0][1]


async def test_services_that_do_not_answer_are_asked_again() -> None:
    services, published = Services(), Object()
    services.fails = ["Admission: away"] * 3
    async with running(services, published) as exporter:
        await until(lambda: len(published.written) == 1)

        assert exporter.problem() is None
    assert services.reads == 4


async def test_services_that_are_back_are_not_named_for_what_the_api_server_says() -> None:
    services, published = Services(), Object()
    services.fails = ["Admission: away"]
    published.fails = [Unreachable("GET x: no answer in time")] * 1000
    async with running(services, published) as exporter:
        await until(lambda: (exporter.problem() or "").startswith("GET x: no answer in time"))


async def test_a_change_that_could_not_be_read_is_written_without_another_one() -> None:
    services, published = Services(), Object()
    async with running(services, published) as exporter:
        await until(lambda: len(published.written) == 1)
        services.fails = ["Admission: away"] * 3
        services.admit("a")
        await until(lambda: len(published.written) == 2)

        assert exporter.problem() is None
    assert not services.fails


async def test_the_time_of_the_last_success_stays_while_nothing_succeeds() -> None:
    services, published = Services(), Object()
    metrics = Metrics(NODE, enabled=True)

    def told() -> tuple[float, float]:
        lines = (line.rpartition(" ") for line in metrics.text().splitlines())
        page = {name: value for name, _, value in lines}
        return float(page[TOPOLOGY_CURRENT]), float(page[TOPOLOGY_CONFIRMED])

    before = told()
    clock = itertools.count(1000)
    async with running(services, published, metrics=metrics, now=lambda: next(clock)):
        await until(lambda: told() == (1, 1000))
        services.say()
        await until(lambda: told() == (1, 1001))
        services.fails = ["Admission: away"] * 1000
        services.say()
        await until(lambda: told() == (0, 1001))
        services.fails = []
        await until(lambda: told() == (1, 1002))

    assert before == (0.0, 0.0)
    assert len(published.written) == 1


@pytest.mark.parametrize("wanted", [True, False])
async def test_at_the_end_it_goes_where_that_is_wanted(wanted: bool) -> None:
    published = Object()
    settings = TopologySettings(delete_at_end=wanted)
    async with running(Services(), published, settings) as exporter:
        pass
    await exporter.end()
    published.fails = [Unreachable("away")]
    await exporter.end()

    assert published.deleted == wanted

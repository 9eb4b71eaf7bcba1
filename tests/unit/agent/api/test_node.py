"""The Node object: followed, told to Admission, and reported where nobody else does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode
from tests.integration.fake_api.server import FakeApiServer
from tests.unit.agent.api.pods import until

from numalign.kube.core.v1 import core_pb2
from numalign.v1 import node_resources_pb2 as nr
from numalign_agent.api.node_follower import NodeFollower
from numalign_agent.api.node_teller import NodeTeller
from numalign_agent.api.own_node.amounts import changed, node_amounts
from numalign_agent.api.own_node.facts import NodeFacts, read_facts
from numalign_agent.api.own_node.reporter import NodeReporter
from numalign_agent.api.reflector import Pace
from numalign_agent.api.server import ApiServer
from numalign_agent.backoff import Backoff
from numalign_client.errors import ServiceUnavailable

PACE = Pace(first=0.01, longest=0.1)
FACTS = NodeFacts(
    hostname="host",
    address="10.0.0.1",
    architecture="amd64",
    kernel="6.1",
    os_image="An OS",
    machine_id="m",
    system_uuid="s",
    boot_id="b",
    memory=4 << 30,
    storage=8 << 30,
    version="1.2.3",
)
RESOURCES = nr.NodeResources(
    cpus=nr.NodeCpus(all="0-7", reserved="0,4"),
    numa_nodes=[
        nr.NumaNodeResources(
            numa_node=node,
            memory=[
                nr.NumaNodeMemoryAmount(resource="memory", allocatable=1 << 30),
                nr.NumaNodeMemoryAmount(resource="hugepages-2Mi", allocatable=4 << 20),
            ],
        )
        for node in (0, 1)
    ],
    devices=[nr.NodeDevices(resource="example.com/gpu", capacity=4, allocatable=3)],
)


def unavailable() -> ServiceUnavailable:
    return ServiceUnavailable(StatusCode.UNAVAILABLE, "away", ())


@asynccontextmanager
async def tasks(*runs: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    started = [asyncio.ensure_future(run()) for run in runs]
    try:
        yield
        assert not any(task.done() for task in started)
    finally:
        for task in started:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def test_changes_of_the_node_reach_admission(fake: FakeApiServer, api: ApiServer) -> None:
    has = {"status": {"capacity": {"cpu": "1"}}}
    fake.store.create("nodes", "", {"metadata": {"name": "n"}, **has})
    fake.store.create("nodes", "", {"metadata": {"name": "other"}})
    told: list[core_pb2.Node] = []

    async def tell(node: core_pb2.Node) -> None:
        told.append(node)

    teller = NodeTeller(tell, repeat_seconds=60)
    follower = NodeFollower(api, "n", [teller.take], PACE)
    async with tasks(follower.run, teller.run):
        await asyncio.wait_for(teller.told.wait(), 20)
        assert (told[-1].metadata.name, len(told)) == ("n", 1)

        beat = {"status": {"conditions": [{"type": "Ready", "lastHeartbeatTime": "x"}]}}
        fake.store.patch("nodes", "", "n", beat)
        await until(lambda: "conditions" in (follower.node() or {})["status"])
        assert len(told) == 1

        fake.store.patch("nodes", "", "n", {"metadata": {"labels": {"zone": "a"}}})
        await until(lambda: dict(told[-1].metadata.labels) == {"zone": "a"})

        fake.store.delete("nodes", "", "n", {})
        await until(lambda: follower.node() is None)


async def test_a_node_that_is_not_there_is_known_to_be_missing(
    fake: FakeApiServer, api: ApiServer
) -> None:
    follower = NodeFollower(api, "n", (), PACE)
    async with tasks(follower.run):
        await asyncio.wait_for(follower.synced.wait(), 20)
        assert follower.node() is None
        assert follower.problems() == {
            "node": "there is no Node n: --node-name (numalign.agent.nodeName) must be the name "
            "that the node has in the cluster"
        }
        fake.store.create("nodes", "", {"metadata": {"name": "n"}})
        await until(lambda: follower.node() is not None)
        assert follower.problems() == {}


async def test_a_node_that_the_agent_makes_itself_may_be_missing(
    fake: FakeApiServer, api: ApiServer
) -> None:
    follower = NodeFollower(api, "n", (), PACE, is_ours=True)
    async with tasks(follower.run):
        await asyncio.wait_for(follower.synced.wait(), 20)
        assert follower.problems() == {}


async def test_admission_is_told_again_when_it_was_away() -> None:
    told: list[str] = []

    async def tell(node: core_pb2.Node) -> None:
        told.append(node.metadata.name)
        if len(told) < 3:
            raise unavailable()

    teller = NodeTeller(tell, repeat_seconds=0.01, backoff=Backoff(0.01, 0.01))
    await teller.take({"metadata": {"name": "n"}})
    async with tasks(teller.run):
        await asyncio.wait_for(teller.told.wait(), 20)
        assert told[:3] == ["n"] * 3
        await until(lambda: len(told) > 4)  # it may have restarted since


async def test_a_node_that_cannot_be_read_is_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    teller = NodeTeller(lambda _: asyncio.sleep(0))
    await teller.take({"metadata": {"name": 3}})

    assert "the Node object cannot be read" in capsys.readouterr().err


def test_amounts_of_a_node() -> None:
    amounts = node_amounts(RESOURCES, FACTS)

    assert amounts.capacity == {
        "cpu": "8",
        "memory": "4Gi",
        "hugepages-2Mi": "8Mi",
        "pods": "110",
        "ephemeral-storage": "8Gi",
        "example.com/gpu": "4",
    }
    assert amounts.allocatable == {
        "cpu": "6",
        "memory": "2Gi",
        "hugepages-2Mi": "8Mi",
        "pods": "110",
        "ephemeral-storage": "8Gi",
        "example.com/gpu": "3",
    }


def test_an_extended_resource_that_is_gone_becomes_zero() -> None:
    shown = {"cpu": "8", "example.com/old": "2", "attachable-volumes-x": "9"}

    assert changed(shown, {"cpu": "8", "pods": "1"}) == {"pods": "1", "example.com/old": "0"}


async def test_a_node_is_registered_reported_and_kept_alive(
    fake: FakeApiServer, api: ApiServer
) -> None:
    readiness: list[str | None] = [None]
    answer: list[nr.NodeResources | None] = [RESOURCES]
    moments = iter(datetime(2026, 1, 1, 0, 0, i % 60, i, tzinfo=UTC) for i in range(10**6))

    async def resources() -> nr.NodeResources:
        if answer[0] is None:
            raise unavailable()
        return answer[0]

    reporter = NodeReporter(
        api,
        "n",
        FACTS,
        resources,
        lambda: readiness[0],
        lease_seconds=0.08,
        status_seconds=0.02,
        now=lambda: next(moments),
    )

    def node() -> Any:
        return fake.store.get("nodes", "", "n")

    def ready() -> Any:
        (condition,) = node()["status"]["conditions"]
        return condition["status"], condition["message"]

    async with tasks(reporter.run):
        await until(lambda: bool(fake.store.all("nodes")) and "status" in node())
        assert node()["metadata"]["labels"]["kubernetes.io/arch"] == "amd64"
        assert node()["status"]["allocatable"]["example.com/gpu"] == "3"
        assert ready() == ("True", "numalign-agent is ready to run pods")

        await until(lambda: bool(fake.store.all("leases")))
        lease = fake.store.get("leases", "kube-node-lease", "n")
        assert lease["spec"]["holderIdentity"] == "n"
        assert lease["metadata"]["ownerReferences"][0]["uid"] == node()["metadata"]["uid"]
        await until(
            lambda: (
                fake.store.get("leases", "kube-node-lease", "n")["spec"]["renewTime"]
                > lease["spec"]["renewTime"]
            )
        )

        readiness[0] = "the runtime is down"
        await until(lambda: ready() == ("False", "the runtime is down"))
        readiness[0], answer[0] = None, None
        await until(lambda: ready()[1].startswith("Admission does not answer"))
        assert node()["status"]["allocatable"]["example.com/gpu"] == "3"

        await fake.stop()
        await until(lambda: set(reporter.problems()) == {"lease", "status"})
        await fake.start()
        await until(lambda: reporter.problems() == {})


def test_facts_of_this_machine(tmp_path: Path) -> None:
    facts = read_facts("1.2.3")
    assert facts.memory > 0
    assert facts.storage > 0
    assert facts.hostname

    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text('PRETTY_NAME="A"\n', encoding="utf-8")
    elsewhere = read_facts("1.2.3", tmp_path)
    assert (elsewhere.os_image, elsewhere.memory, elsewhere.boot_id) == ("A", 0, "")

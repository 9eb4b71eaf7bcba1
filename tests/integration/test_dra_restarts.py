"""Restarts of driver, DRA service, node and agent, with pods that keep running on their claims."""

from __future__ import annotations

import itertools
import signal
from collections import Counter
from collections.abc import Iterator

import pytest
from grpc import aio
from tests.integration.dra_world import (
    DRIVER,
    ClaimingAgent,
    Place,
    claiming_pod,
    place,
    pod_resources,
    reached,
)
from tests.integration.plugin_world import end, until

from numalign.config.settings import Service
from numalign_agent.claims.slices import DriverQuestion

pytestmark = pytest.mark.processes

ORDERS = tuple(
    order
    for order in itertools.permutations(("end_driver", "start_driver", "end_node", "start_node"))
    if order.index("end_driver") < order.index("start_driver")
    and order.index("end_node") < order.index("start_node")
)
"""Every order of ending and starting both, each started after it was ended."""


@pytest.fixture(name="world")
def world_fixture() -> Iterator[Place]:
    with place() as made:
        for name in ("card-0", "card-1"):
            made.device(name)
        made.config()
        yield made


class Deployment:
    """A node and a driver, which speaks another version of the interface each time."""

    def __init__(self, world: Place) -> None:
        self.world = world
        self.versions = itertools.cycle(("v1", "v1beta1"))
        self.start_node()
        self.start_driver()

    def end_driver(self) -> None:
        end(self.driver, signal.SIGKILL)

    def start_driver(self) -> None:
        self.driver = self.world.driver("--version", next(self.versions))

    def end_node(self) -> None:
        end(self.node, signal.SIGKILL)

    def start_node(self) -> None:
        self.node = self.world.service(None)


async def released(agent: ClaimingAgent, pod_uid: str) -> None:
    async def done() -> bool:
        try:
            await agent.release(pod_uid)
        except aio.AioRpcError:
            return False
        return True

    await until(done, f"{pod_uid} is released")


async def test_nothing_is_prepared_twice_or_left_behind(world: Place) -> None:
    deployment = Deployment(world)
    expected: Counter[str] = Counter()
    async with reached(world) as agent:
        for number, order in enumerate(ORDERS):
            shared, own = f"s{number}", f"o{number}"
            first, second = f"a{number}", f"b{number}"
            claims = (
                world.claim(shared, f"u-{shared}", first, second, device="card-0"),
                world.claim(own, f"u-{own}", first, device="card-1"),
            )
            pod, other = claiming_pod(first, shared, own), claiming_pod(second, shared)
            await agent.admit(pod)
            await agent.prepared(pod, *claims)
            for action in order:
                getattr(deployment, action)()
            # An agent that has restarted asks for everything again, and another pod comes.
            await agent.up()
            await agent.admit(pod)
            again = await agent.prepared(pod, *claims)
            await agent.admit(other)
            await agent.prepared(other, claims[0])
            names = list((await agent.container(first)).edits.cdi_devices)
            await released(agent, first)
            between = world.left()
            await released(agent, second)

            expected.update(f"{what} u-{c}" for c in (shared, own) for what in ("prepared",))
            expected.update(f"unprepared u-{c}" for c in (shared, own))
            assert len(again.allocations[0].claims) == 2, order
            assert names == [
                f"{DRIVER}/claim=u-{shared}-card-0",
                f"{DRIVER}/claim=u-{own}-card-1",
            ], order
            assert between == [f"u-{shared}"], order
            assert world.left() == [], order
            assert world.done() == expected, order
        assert list((await agent.kept()).claims) == []


async def test_a_node_goes_on_where_it_was(world: Place) -> None:
    pod, made = claiming_pod("a", "c1"), world.claim("c1", "u1", "a", device="card-0")
    node = world.service(None)
    world.driver()
    async with reached(world) as agent:
        await agent.admit(pod)
        await agent.prepared(pod, made)
        before = await pod_resources(world)
        end(node, signal.SIGKILL)
        node = world.service(None)
        await agent.up()
        container = await agent.container("a")
        after = await pod_resources(world)
        (kept,) = (await agent.kept()).claims
        await released(agent, "a")

    assert node.poll() is None
    (shown,) = before[0].containers[0].dynamic_resources
    assert (shown.claim_name, shown.claim_namespace) == ("c1", "shop")
    (device,) = shown.claim_resources
    assert (device.driver_name, device.pool_name, device.device_name) == (DRIVER, "files", "card-0")
    assert [cdi.name for cdi in device.cdi_devices] == [f"{DRIVER}/claim=u1-card-0"]
    assert before == after
    assert list(container.edits.cdi_devices) == [f"{DRIVER}/claim=u1-card-0"]
    assert kept.drivers[0].prepared
    assert world.done() == Counter({"prepared u1": 1, "unprepared u1": 1})


async def test_a_lost_state_of_claims_comes_back_from_the_record(world: Place) -> None:
    pods = {uid: claiming_pod(uid, "c1") for uid in ("a", "b")}
    made = world.claim("c1", "u1", "a", "b", device="card-0")
    services = {service: world.service(service) for service in Service}
    world.driver()
    async with reached(world) as agent:
        for pod in pods.values():
            await agent.admit(pod)
            await agent.prepared(pod, made)
        end(services[Service.DRA], signal.SIGKILL)
        for path in (world.root / "state").glob("dra.db*"):
            path.unlink()
        world.service(Service.DRA)
        await agent.up()
        await agent.registered()
        await released(agent, "a")
        between = world.left()
        await released(agent, "b")

    assert (between, world.left()) == (["u1"], [])
    assert world.done() == Counter({"prepared u1": 1, "unprepared u1": 1})


async def test_an_agent_can_tell_which_drivers_are_gone(world: Place) -> None:
    question = DriverQuestion(world.path("run") / "dra.sock")

    async def says(expected: frozenset[str] | None) -> None:
        async def so() -> bool:
            return await question.connected() == expected

        await until(so, f"the service says {expected}")

    try:
        deployment = Deployment(world)
        await says(frozenset({DRIVER}))
        deployment.end_driver()
        await says(frozenset())
        deployment.start_driver()
        await says(frozenset({DRIVER}))
        deployment.end_node()
        await says(None)
    finally:
        await question.close()

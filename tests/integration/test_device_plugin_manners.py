"""Plugins with bad manners and a whole node: who is hurt, and what stays behind (nothing)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
from grpc import StatusCode
from tests.integration.plugin_world import Agent, Place, devices_of, place, pod, until
from tests.unit.device.plugin_host.fake_plugin import GPU, Abort, FakePlugin, hang, served
from tests.waiting import answered

from numalign.config.settings import Service
from numalign.kube.deviceplugin.v1beta1 import api_pb2 as dp
from numalign.process.node import Node
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub
from numalign.v1.hint_provider_pb2_grpc import HintProviderStub

pytestmark = pytest.mark.processes

LISTED = dp.ListAndWatchResponse(
    devices=[
        dp.Device(ID=id_, health="Healthy", topology=dp.TopologyInfo(nodes=[dp.NUMANode(ID=0)]))
        for id_ in ("g0", "g1", "g2")
    ]
)


async def fail() -> None:
    raise Abort(StatusCode.UNKNOWN, "out of order")


@pytest.fixture(name="world")
def world_fixture() -> Iterator[Place]:
    with place() as made:
        yield made


@asynccontextmanager
async def running(
    world: Place, plugin: FakePlugin, **changes: object
) -> AsyncIterator[tuple[Agent, Node]]:
    """A node with this plugin for GPUs, found by the plugin watcher."""
    plugin.last = LISTED
    node = await Node.open(world.settings(**changes))
    try:
        await node.serving()
        agent = Agent(AdmissionStub(node.channel(Service.ADMISSION)))
        async with served(plugin, world.watched / "p"):
            await until(lambda: knows(node), "the devices are known")
            yield agent, node
    finally:
        await node.close()


async def resources(node: Node) -> hp.DeviceResource | None:
    stub = HintProviderStub(node.channel(Service.DEVICE))
    state = await stub.GetState(hp.GetStateRequest())
    return next((r for r in state.device.resources if r.resource == GPU), None)


async def knows(node: Node) -> bool:
    found = await resources(node)
    return found is not None and found.allocatable == 3


async def allocated(node: Node) -> list[str]:
    found = await resources(node)
    assert found is not None
    return list(found.allocated)


def unexpected(error: str) -> str:
    return f"Allocate failed due to {error}, which is unexpected"


@pytest.mark.parametrize("compatibility", ["safe", "kubelet"])
@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        pytest.param(fail, "rpc error: code = Unknown desc = out of order", id="fails"),
        pytest.param(hang, f"device plugin of {GPU} did not answer Allocate within ", id="hangs"),
    ],
)
async def test_an_allocate_that_does_not_come(
    world: Place, compatibility: str, behaviour: Callable[[], Awaitable[None]], error: str
) -> None:
    plugin = FakePlugin(before={"Allocate": behaviour})
    async with running(world, plugin, compatibility=compatibility, provider_timeout="4s") as (
        agent,
        node,
    ):
        refused = await agent.admit(pod("p", {"gpu": 1, "cpu": 1}))
        other = await agent.admit(pod("q", {"cpu": 1}))
        left = await allocated(node)
        plugin.before.clear()
        admitted = await agent.admit(pod("r", {"gpu": 3}))

    assert (refused.verdict, refused.reason) == (pb.VERDICT_REJECTED, "UnexpectedAdmissionError")
    assert refused.message.startswith(f"Allocate failed due to {error}")
    assert refused.message.endswith(", which is unexpected")
    assert other.verdict == pb.VERDICT_ADMITTED
    assert left == []
    assert devices_of(admitted) == ["g0", "g1", "g2"]


async def test_an_allocate_that_answers_for_nobody(world: Place) -> None:
    plugin = FakePlugin(allocated=dp.AllocateResponse())
    async with running(world, plugin) as (agent, node):
        refused = await agent.admit(pod("p", {"gpu": 1}))
        left = await allocated(node)

    assert refused.message.startswith(
        "Allocate failed due to no containers return in allocation response"
    )
    assert left == []


@pytest.mark.parametrize(
    "preferred",
    [
        pytest.param(["nowhere", "g1"], id="a-device-never-listed"),
        pytest.param(["g1", "g2", "g0"], id="too-many"),
    ],
)
async def test_a_strange_preference_is_taken_as_far_as_it_makes_sense(
    world: Place, preferred: list[str]
) -> None:
    plugin = FakePlugin(
        options=dp.DevicePluginOptions(get_preferred_allocation_available=True),
        preferred=dp.PreferredAllocationResponse(
            container_responses=[dp.ContainerPreferredAllocationResponse(deviceIDs=preferred[:2])]
        ),
    )
    async with running(world, plugin) as (agent, _):
        response = await agent.admit(pod("p", {"gpu": 1}))

    assert devices_of(response) == ["g1"]


async def test_a_preference_that_hangs(world: Place) -> None:
    plugin = FakePlugin(
        options=dp.DevicePluginOptions(get_preferred_allocation_available=True),
        before={"GetPreferredAllocation": hang},
    )
    async with running(world, plugin, provider_timeout="4s") as (agent, node):
        refused = await agent.admit(pod("p", {"gpu": 1}))
        left = await allocated(node)

    assert refused.message.startswith(
        "Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: "
        f"device plugin of {GPU} did not answer GetPreferredAllocation within "
    )
    assert left == []


async def test_a_plugin_that_dies_between_its_two_calls(world: Place) -> None:
    plugin = FakePlugin(options=dp.DevicePluginOptions(get_preferred_allocation_available=True))
    dying = asyncio.Event()

    async def die() -> None:
        dying.set()
        plugin.end_lists()
        raise Abort(StatusCode.UNAVAILABLE, "going down")

    plugin.before["Allocate"] = die
    async with running(world, plugin) as (agent, node):
        refused = await agent.admit(pod("p", {"gpu": 1}))

        async def gone() -> bool:
            found = await resources(node)
            return found is not None and not found.connected

        await until(gone, "its end is noticed")
        left = await allocated(node)

    assert dying.is_set()
    # Its stream may end before its call does.
    assert refused.message in {
        unexpected("rpc error: code = Unavailable desc = going down"),
        unexpected(f"endpoint {GPU} has been stopped"),
    }
    assert left == []


async def test_a_refusal_by_another_provider_leaves_the_plugin_untold(world: Place) -> None:
    plugin = FakePlugin()
    async with running(world, plugin) as (agent, node):
        refused = await agent.admit(pod("p", {"gpu": 1}, {"cpu": 9}))
        left = await allocated(node)

    assert refused.verdict == pb.VERDICT_REJECTED
    assert "Allocate" not in [method for method, _ in plugin.asked]
    assert left == []


async def test_a_call_that_is_given_up_frees_the_devices(world: Place) -> None:
    plugin = FakePlugin(before={"Allocate": hang})
    async with running(world, plugin) as (agent, _):
        admitting = asyncio.ensure_future(agent.admit(pod("p", {"gpu": 1})))

        async def told() -> bool:
            return "Allocate" in [method for method, _ in plugin.asked]

        await until(told, "the plugin is asked")
        admitting.cancel()
        await asyncio.gather(admitting, return_exceptions=True)
        plugin.before.clear()
        admitted = await agent.admit(pod("q", {"gpu": 3}))

    assert devices_of(admitted) == ["g0", "g1", "g2"]


async def test_a_flood_of_lists_does_not_hold_up_admissions(world: Place) -> None:
    plugin = FakePlugin()
    async with running(world, plugin) as (agent, _):
        clock = asyncio.get_running_loop().time

        async def flood() -> None:
            while True:
                for queue in plugin.lists:
                    if queue.qsize() < 10:
                        queue.put_nowait(LISTED)
                await asyncio.sleep(0)

        flooding = asyncio.create_task(flood())
        begun = clock()
        for number in range(20):
            response = await agent.admit(pod(f"p{number}", {"gpu": 1}))
            assert response.verdict == pb.VERDICT_ADMITTED
            await agent.release(f"p{number}")
        seconds = clock() - begun
        flooding.cancel()
        await asyncio.gather(flooding, return_exceptions=True)

    assert seconds < 100


async def test_a_start_that_fails_says_so(world: Place) -> None:
    plugin = FakePlugin(
        options=dp.DevicePluginOptions(pre_start_required=True),
        before={"PreStartContainer": fail},
    )
    async with running(world, plugin) as (agent, _):
        await agent.admit(pod("p", {"gpu": 1}))
        with pytest.raises(Exception, match="out of order") as failed:
            await agent.prepared("p", "c0")

    assert "device plugin PreStartContainer rpc failed with err: rpc error" in str(failed.value)


async def test_a_slow_start_holds_up_nobody_else(world: Place) -> None:
    ready = asyncio.Event()

    async def warm_up() -> None:
        await ready.wait()

    plugin = FakePlugin(
        options=dp.DevicePluginOptions(pre_start_required=True),
        before={"PreStartContainer": warm_up},
    )
    async with running(world, plugin, provider_timeout="1s") as (agent, _):
        # On a busy machine that is too short for an admission, which is then asked for again.
        await answered(lambda: agent.admit(pod("p", {"gpu": 1})), StatusCode.UNAVAILABLE)
        starting = asyncio.ensure_future(agent.prepared("p", "c0"))

        async def told() -> bool:
            return "PreStartContainer" in [method for method, _ in plugin.asked]

        await until(told, "the plugin makes the device ready")
        other = await answered(lambda: agent.admit(pod("q", {"gpu": 1})), StatusCode.UNAVAILABLE)
        await asyncio.sleep(1.5)
        waiting = not starting.done()
        ready.set()
        prepared = await starting

    assert devices_of(other) == ["g1"]
    assert waiting
    assert prepared.edits.envs == {"A": "1"}

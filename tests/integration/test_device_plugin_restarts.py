"""Restarts of plugin, device service and node in every order, with pods that keep running."""

from __future__ import annotations

import itertools
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from subprocess import Popen

import pytest
from grpc import aio
from tests.integration.plugin_world import Agent, Place, devices_of, end, place, pod, until

from numalign.config.settings import CORE_SERVICES, Service
from numalign.v1 import types_pb2 as pb
from numalign.v1.admission_pb2_grpc import AdmissionStub

pytestmark = pytest.mark.processes

RUNNING = {"a": ["g0"], "b": ["g1", "g2"]}
FREE = "g3"


@pytest.fixture(name="world")
def world_fixture() -> Iterator[Place]:
    with place() as made:
        for name in ("g0", "g1", "g2", "g3"):
            made.device(name, 0)
        made.config()
        yield made


class Deployment:
    """Five services and a plugin, each of which can be restarted."""

    def __init__(self, world: Place) -> None:
        self.world = world
        self.services = {service: world.service(service) for service in CORE_SERVICES}
        self.plugin = world.plugin()

    def restart_plugin(self) -> None:
        self.end_plugin()
        self.start_plugin()

    def end_plugin(self) -> None:
        end(self.plugin, signal.SIGKILL)

    def start_plugin(self) -> None:
        self.plugin = self.world.plugin()

    def end_device(self) -> None:
        end(self.services[Service.DEVICE], signal.SIGKILL)

    def start_device(self) -> None:
        self.services[Service.DEVICE] = self.world.service(Service.DEVICE)


@asynccontextmanager
async def deployed(world: Place) -> AsyncIterator[tuple[Deployment, Agent]]:
    deployment = Deployment(world)
    async with aio.insecure_channel(f"unix:{world.root}/run/admission.sock") as channel:
        agent = Agent(AdmissionStub(channel))
        await until(lambda: answers(agent), "the services are up")
        yield deployment, agent


async def answers(agent: Agent) -> bool:
    try:
        return await agent.can_have({"gpu": 2})
    except aio.AioRpcError:
        return False


async def verdict(agent: Agent) -> object:
    try:
        return (await agent.admit(pod("probe", {"gpu": 1}), dry_run=True)).verdict
    except aio.AioRpcError as error:
        return error.code()


ORDERS = tuple(
    order
    for order in itertools.permutations(
        ("end_plugin", "start_plugin", "end_device", "start_device")
    )
    if order.index("end_plugin") < order.index("start_plugin")
    and order.index("end_device") < order.index("start_device")
)
"""Every order of ending and starting both, each started after it was ended."""


async def test_nothing_is_lost_or_given_twice(world: Place) -> None:
    async with deployed(world) as (deployment, agent):
        for number, order in enumerate(ORDERS):
            told = len(world.journal())
            for uid, held in RUNNING.items():
                asked = pod(f"{uid}{number}", {"gpu": len(held)})
                assert devices_of(await agent.admit(asked)) == held, order
            for action in order:
                getattr(deployment, action)()
            await until(lambda: can_have_one(agent), "a device can be had again")
            for uid, held in RUNNING.items():
                kept = await agent.admit(pod(f"{uid}{number}", {"gpu": len(held)}))
                assert kept.already_admitted, order
                assert devices_of(kept) == held, order
            last = await agent.admit(pod(f"c{number}", {"gpu": 1}))
            over = await agent.admit(pod(f"d{number}", {"gpu": 1}))
            await agent.release(f"a{number}")
            again = await agent.admit(pod(f"e{number}", {"gpu": 1}))

            assert devices_of(last) == [FREE], order
            assert over.verdict == pb.VERDICT_REJECTED, order
            assert devices_of(again) == ["g0"], order
            assert world.journal()[told:] == [*RUNNING.values(), [FREE], ["g0"]], order
            for uid in ("b", "c", "e"):
                await agent.release(f"{uid}{number}")


async def can_have_one(agent: Agent) -> bool:
    try:
        return await agent.can_have({"gpu": 1})
    except aio.AioRpcError:
        return False


async def test_not_yet_while_only_the_plugin_is_missing(world: Place) -> None:
    async with deployed(world) as (deployment, agent):
        await agent.admit(pod("a", {"gpu": 1}))
        deployment.end_plugin()
        deployment.end_device()
        deployment.start_device()

        async def deferred() -> bool:
            return await verdict(agent) == pb.VERDICT_DEFERRED

        await until(deferred, "the device service is back")
        without = await agent.admit(pod("b", {}))
        kept = await agent.admit(pod("a", {"gpu": 1}))
        deployment.start_plugin()
        await until(lambda: can_have_one(agent), "the plugin is back")

    assert without.verdict == pb.VERDICT_ADMITTED
    assert devices_of(kept) == ["g0"]


async def test_the_whole_node_restarts_in_one_process(world: Place) -> None:
    node: Popen[bytes] = world.service(None)
    world.plugin()
    async with aio.insecure_channel(f"unix:{world.root}/run/admission.sock") as channel:
        agent = Agent(AdmissionStub(channel))
        await until(lambda: answers(agent), "the node is up")
        first = await agent.admit(pod("a", {"gpu": 2}))
        end(node, signal.SIGKILL)
        node = world.service(None)
        await until(lambda: can_have_one(agent), "the plugin has registered again")
        kept = await agent.admit(pod("a", {"gpu": 2}))
        second = await agent.admit(pod("b", {"gpu": 2}))
        end(node)

    assert kept.already_admitted
    assert devices_of(first) == devices_of(kept) == ["g0", "g1"]
    assert devices_of(second) == ["g2", "g3"]
    assert node.returncode == 0

"""The health of held devices: from a real plugin process to whoever watches Admission."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing

import pytest
from tests.integration.plugin_world import Place, end, place, pod, until

from numalign_client import (
    AsyncClient,
    ServiceUnavailable,
    UnhealthyDevices,
    allocated_resources_status,
)
from numalign_client.results import AssignmentEvent

GPU = "example.com/gpu"
HELD = ("p", "c0", GPU)

pytestmark = pytest.mark.processes


@pytest.fixture(name="world")
def world_fixture() -> Iterator[Place]:
    with place() as made:
        for name in ("g0", "g1"):
            made.device(name, 0)
        yield made


async def told(events: AsyncGenerator[AssignmentEvent], *expected: tuple[str, str]) -> None:
    """Wait until these devices of the pod are said to be not healthy, and no others."""
    async with asyncio.timeout(60):
        async for event in events:
            if isinstance(event, UnhealthyDevices):
                assert {(d.pod_uid, d.container, d.resource) for d in event.devices} <= {HELD}
                if tuple((d.id, d.health) for d in event.devices) == expected:
                    return


async def test_flips_ends_and_restarts_reach_those_who_watch(world: Place) -> None:
    world.config()
    node = world.service(None)
    plugin = world.plugin()
    async with AsyncClient(world.root / "run" / "admission.sock") as numalign:
        await until(lambda: serves(numalign), "a device")
        await numalign.admit(pod("p", {"gpu": 1}))
        async with aclosing(numalign.watch()) as events:
            await told(events)
            world.device("g1", 0, "Unhealthy")
            world.device("g0", 0, "Unhealthy")
            await told(events, ("g0", "Unhealthy"))
            listed = await numalign.admissions()
            world.device("g0", 0)
            await told(events)
            end(plugin, signal.SIGKILL)
            await told(events, ("g0", "Unknown"))
            plugin = world.plugin()
            await told(events)
            end(node)
            end(plugin)
            world.service(None)
            await told(events, ("g0", "Unknown"))
            world.plugin()
            await told(events)
    (record,) = listed.pods
    assert allocated_resources_status(record, listed.unhealthy_devices) == {
        "c0": [{"name": GPU, "resources": [{"resourceID": "g0", "health": "Unhealthy"}]}]
    }


async def serves(numalign: AsyncClient) -> bool:
    """Whether the pod would get a device."""
    try:
        decision = await numalign.admit(pod("p", {"gpu": 1}), dry_run=True)
    except ServiceUnavailable:
        return False
    return any(held.devices for held in decision.allocations)

"""Devices that a container gets only as it starts, from a real plugin process."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from grpc import StatusCode, aio
from tests.integration.plugin_world import (
    GPU,
    Agent,
    Place,
    devices_of,
    place,
    pod,
    running,
    until,
)

from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

pytestmark = pytest.mark.processes

NODE_1_ONLY = {"cpu": 4, "gpu": 1}
"""Four CPUs: node 0 has but three that are not reserved."""


@pytest.fixture(name="world")
def world_fixture() -> Iterator[Place]:
    with place() as made:
        for name, numa in (("g0", 0), ("g1", 0), ("g2", 1), ("g3", 1)):
            made.device(name, numa)
        yield made


async def admitted_before_the_plugin(world: Place, agent: Agent) -> None:
    """A pod that asks for a resource of which nobody has heard, and then the plugin."""
    response = await agent.admit(pod("p", NODE_1_ONLY))
    assert response.verdict == pb.VERDICT_ADMITTED
    assert devices_of(response) == []
    world.plugin("--pre-start")
    await until(lambda: agent.can_have({"gpu": 1}), "a device")


def calls(world: Place) -> list[tuple[str, list[str]]]:
    lines = (world.root / "journal").read_text(encoding="utf-8").splitlines()
    read = [json.loads(line) for line in lines]
    kinds = ("Allocate", "PreStartContainer")
    return [(line["call"], line["ids"]) for line in read if line["call"] in kinds]


async def test_late_devices_are_where_the_container_is_and_made_ready(world: Place) -> None:
    async with running(world) as agent:
        await admitted_before_the_plugin(world, agent)

        first = await agent.prepared("p", "c0")
        again = await agent.prepared("p", "c0")
        (record,) = (await agent.stub.ListAdmissions(ad.ListAdmissionsRequest())).admissions
        other = await agent.admit(pod("q", {"gpu": 2}))

    assert first.edits.envs == again.edits.envs == {"EXAMPLE_COM_GPU": "g2"}
    assert calls(world) == [
        ("Allocate", ["g2"]),
        ("PreStartContainer", ["g2"]),
        ("PreStartContainer", ["g2"]),
        ("Allocate", ["g0", "g1"]),
    ]
    assert [list(d.ids) for a in record.allocations for d in a.devices] == [["g2"]]
    assert record.allocations[0].cpus == "4-7"
    assert devices_of(other) == ["g0", "g1"]


async def test_as_a_kubelet_a_plugin_that_insists_has_nothing_to_make_ready(world: Place) -> None:
    async with running(world, compatibility="kubelet") as agent:
        await admitted_before_the_plugin(world, agent)

        with pytest.raises(aio.AioRpcError) as failed:
            await agent.prepared("p", "c0")

    assert failed.value.code() is StatusCode.FAILED_PRECONDITION
    assert failed.value.details() == (
        f"no devices found allocated in local cache for pod p, container c0, resource {GPU}"
    )

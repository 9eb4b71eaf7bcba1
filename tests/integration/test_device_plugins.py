"""Real device plugin processes against a node in this process: both ways in, and what follows."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from grpc import StatusCode, aio
from tests.integration.plugin_world import (
    GPU,
    NIC,
    Place,
    devices_of,
    end,
    place,
    pod,
    running,
    until,
)

from numalign.errors import StartError
from numalign.process.node import Node
from numalign.v1 import types_pb2 as pb

pytestmark = pytest.mark.processes


@pytest.fixture(name="world")
def world_fixture() -> Iterator[Place]:
    with place() as made:
        for name, numa in (("g0", 0), ("g1", 0), ("g2", 1), ("g3", 1)):
            made.device(name, numa)
        yield made


@contextmanager
def listening(path: Path) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        yield


def unexpected(error: str) -> str:
    return f"Allocate failed due to {error}, which is unexpected"


@pytest.mark.parametrize(
    "watched", [pytest.param(False, id="registers"), pytest.param(True, id="is-found")]
)
async def test_devices_of_a_plugin_are_allocated(world: Place, watched: bool) -> None:
    world.plugin(watched=watched)
    async with running(world) as agent:
        await until(lambda: agent.can_have({"gpu": 2}), "two devices")
        response = await agent.admit(pod("p", {"gpu": 2, "cpu": 1}))
        prepared = await agent.prepared("p", "c0")

    assert response.verdict == pb.VERDICT_ADMITTED
    assert devices_of(response) == ["g0", "g1"]
    assert response.allocations[0].affinity.mask == 0b01
    assert prepared.edits.envs == {"EXAMPLE_COM_GPU": "g0,g1"}
    assert [mount.container_path for mount in prepared.edits.mounts] == [
        "/var/run/devices/g0",
        "/var/run/devices/g1",
    ]
    assert prepared.edits.annotations == {GPU: "g0,g1"}
    assert world.journal() == [["g0", "g1"]]


async def test_hints_follow_the_topology_of_the_plugin(world: Place) -> None:
    world.plugin()
    async with running(world) as agent:
        await until(lambda: agent.can_have({"gpu": 2}), "two devices")
        refused = await agent.admit(pod("wide", {"gpu": 3}))
        first = await agent.admit(pod("a", {"gpu": 1}))
        second = await agent.admit(pod("b", {"gpu": 2}))

    assert (refused.verdict, refused.reason) == (pb.VERDICT_REJECTED, "TopologyAffinityError")
    assert devices_of(first) == ["g0"]
    assert devices_of(second) == ["g2", "g3"]
    assert world.journal() == [["g0"], ["g2", "g3"]]


async def test_health_flips_and_devices_that_go(world: Place) -> None:
    world.plugin()
    async with running(world) as agent:
        await until(lambda: agent.can_have({"gpu": 2}, {"gpu": 2}), "four devices")
        world.device("g0", 0, health="Unhealthy")

        async def lost() -> bool:
            return not await agent.can_have({"gpu": 2}, {"gpu": 2})

        await until(lost, "three devices")
        response = await agent.admit(pod("p", {"gpu": 1}, {"gpu": 1}))
        world.device("g0", 0)
        await until(lambda: agent.can_have({"gpu": 1}, {"gpu": 1}), "the fourth is back")
        (world.devices() / "g0").unlink()

        async def one_left() -> bool:
            return not await agent.can_have({"gpu": 1}, {"gpu": 1})

        await until(one_left, "the fourth is gone")

    assert devices_of(response) == ["g1", "g2"]


async def test_a_dry_run_and_a_refusal_elsewhere_ask_no_plugin_to_allocate(world: Place) -> None:
    world.plugin()
    async with running(world) as agent:
        await until(lambda: agent.can_have({"gpu": 2}), "two devices")
        refused = await agent.admit(pod("p", {"gpu": 1, "cpu": 9}))

    assert refused.verdict == pb.VERDICT_REJECTED
    assert world.journal() == []


async def test_a_plugin_that_refuses_leaves_nothing_behind(world: Place) -> None:
    world.plugin()
    async with running(world) as agent:
        await until(lambda: agent.can_have({"gpu": 4 // 2}), "two devices")
        world.devices().rename(world.root / "away")
        world.devices()
        refused = await agent.admit(pod("p", {"gpu": 1}))
        world.devices().rmdir()
        (world.root / "away").rename(world.devices().parent / "gpu")
        await until(lambda: agent.can_have({"gpu": 2}, {"gpu": 2}), "all four again")

    assert (refused.verdict, refused.reason) == (
        pb.VERDICT_REJECTED,
        "UnexpectedAdmissionError",
    )
    assert refused.message in {
        unexpected("rpc error: code = InvalidArgument desc = no such device: g0"),
        unexpected(f"no healthy devices present; cannot allocate unhealthy devices {GPU}"),
    }


async def test_a_killed_plugin_is_noticed_and_may_come_back(world: Place) -> None:
    plugin = world.plugin()
    world.plugin(resource=NIC)
    world.device("n0", 0, resource=NIC)
    async with running(world) as agent:
        await until(lambda: agent.can_have({"gpu": 1, "nic": 1}), "both plugins")
        held = await agent.admit(pod("p", {"gpu": 1}))
        end(plugin, signal.SIGKILL)

        async def gone() -> bool:
            return not await agent.can_have({"gpu": 1})

        await until(gone, "the plugin is gone")
        refused = await agent.admit(pod("q", {"gpu": 1}))
        other = await agent.admit(pod("r", {"nic": 1}))
        again = await agent.admit(pod("p", {"gpu": 1}))
        world.plugin()
        await until(lambda: agent.can_have({"gpu": 1}), "the plugin is back")
        later = await agent.admit(pod("s", {"gpu": 1}))

    assert devices_of(held) == ["g0"]
    assert refused.message == "Resources cannot be allocated with Topology locality"
    assert devices_of(other, NIC) == ["n0"]
    assert again.already_admitted
    assert devices_of(again) == ["g0"]
    assert devices_of(later) == ["g1"]


async def test_a_plugin_is_told_before_every_start_if_it_wants(world: Place) -> None:
    world.plugin("--pre-start")
    async with running(world) as agent:
        await until(lambda: agent.can_have({"gpu": 1}), "a device")
        await agent.admit(pod("p", {"gpu": 1}))
        await agent.prepared("p", "c0")
        await agent.prepared("p", "c0")

    assert world.journal("PreStartContainer") == [["g0"], ["g0"]]


async def test_devices_of_init_containers_are_handed_on(world: Place) -> None:
    world.plugin()
    async with running(world) as agent:
        await until(lambda: agent.can_have({"gpu": 1}), "a device")
        response = await agent.admit(pod("p", {"gpu": 2}, init=[{"gpu": 1}]))

    assert devices_of(response) == ["g0", "g0", "g1"]
    assert world.journal() == [["g0"], ["g0", "g1"]]


async def test_preference_of_the_plugin(world: Place) -> None:
    for name, numa in (("g0", 0), ("g1", 1), ("g2", 0), ("g3", 0)):
        world.device(name, numa)
    world.plugin()
    async with running(world) as agent:
        await until(lambda: agent.can_have({"gpu": 2}), "devices")
        response = await agent.admit(pod("p", {"gpu": 2}))

    assert devices_of(response) == ["g0", "g2"]
    calls = response.explanation.plugin_calls
    assert [call.call for call in calls] == ["GetPreferredAllocation", "Allocate"]


async def test_not_yet_after_a_restart_until_the_plugin_is_back(world: Place) -> None:
    plugin = world.plugin()
    async with running(world) as agent:
        await until(lambda: agent.can_have({"gpu": 1}), "a device")
        await agent.admit(pod("p", {"gpu": 1}))
    end(plugin)
    async with running(world) as agent:
        deferred = await agent.admit(pod("q", {"gpu": 1}))
        running_pod = await agent.admit(pod("p", {"gpu": 1}))
        unconcerned = await agent.admit(pod("r", {}))
        world.plugin()
        await until(lambda: agent.can_have({"gpu": 1}), "the plugin is back")
        admitted = await agent.admit(pod("q", {"gpu": 1}))

    assert deferred.verdict == pb.VERDICT_DEFERRED
    assert deferred.reason == "DevicePluginNotReady"
    assert deferred.message == (
        f"the device plugin of {GPU} has not reported since the device provider started"
    )
    assert deferred.retry_after.ToTimedelta().total_seconds() == 2.0
    assert not deferred.allocations
    assert running_pod.already_admitted
    assert devices_of(running_pod) == ["g0"]
    assert unconcerned.verdict == pb.VERDICT_ADMITTED
    assert devices_of(admitted) == ["g1"]
    assert world.journal() == [["g0"], ["g1"]]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"reportDeadline": "1ms"}, id="deadline-passed"),
        pytest.param({"compatibility": "kubelet"}, id="kubelet"),
    ],
)
async def test_the_kubelet_s_refusal_after_a_restart(world: Place, changes: dict[str, str]) -> None:
    plugin = world.plugin()
    async with running(world, **changes) as agent:
        await until(lambda: agent.can_have({"gpu": 1}), "a device")
    end(plugin)
    async with running(world, **changes) as agent:

        async def judged() -> bool:
            response = await agent.admit(pod("q", {"gpu": 1}))
            return response.verdict != pb.VERDICT_DEFERRED

        await until(judged, "not waited for")
        refused = await agent.admit(pod("q", {"gpu": 1}))

    assert refused.message == unexpected(
        f"no healthy devices present; cannot allocate unhealthy devices {GPU}"
    )


async def test_a_living_kubelet_is_left_alone(world: Place) -> None:
    with listening(world.plugins / "kubelet.sock"), listening(world.plugins / "other.sock"):
        with pytest.raises(StartError) as refused:
            await Node.open(world.settings())

        assert str(refused.value) == (f"{world.plugins}/kubelet.sock: another server answers there")
        assert (world.plugins / "other.sock").exists()


async def test_sockets_in_the_directory_are_removed_at_start_and_nothing_else(
    world: Place,
) -> None:
    (world.plugins / "notes").write_text("stay", encoding="utf-8")
    (world.plugins / "below").mkdir()
    with listening(world.plugins / "below" / "old.sock"), listening(world.plugins / "old.sock"):
        async with running(world):
            names = {path.name for path in world.plugins.iterdir()}
            kept = (world.plugins / "below" / "old.sock").exists()

    assert names == {"notes", "below", "kubelet.sock", "DEPRECATION"}
    assert kept


async def test_a_failing_start_says_so_to_the_agent(world: Place) -> None:
    plugin = world.plugin("--pre-start")
    async with running(world) as agent:
        await until(lambda: agent.can_have({"gpu": 1}), "a device")
        await agent.admit(pod("p", {"gpu": 1}))
        end(plugin, signal.SIGKILL)

        async def gone() -> bool:
            return not await agent.can_have({"gpu": 1})

        await until(gone, "the plugin is gone")
        with pytest.raises(aio.AioRpcError) as failed:
            await agent.prepared("p", "c0")
        others = await agent.admit(pod("q", {}))

    assert failed.value.code() is StatusCode.FAILED_PRECONDITION
    assert failed.value.details() == (
        f"device plugin PreStartContainer rpc failed with err: endpoint {GPU} has been stopped"
    )
    assert others.verdict == pb.VERDICT_ADMITTED

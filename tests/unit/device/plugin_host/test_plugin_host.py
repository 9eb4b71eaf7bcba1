"""The plugin host against plugins on real sockets: connecting, lists, calls, and bad manners."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from grpc import StatusCode
from tests.unit.device.plugin_host.fake_plugin import (
    GPU,
    PATIENCE,
    Abort,
    FakePlugin,
    World,
    hang,
    hosting,
    served,
    until,
)

from numalign.device.inventory import PluginOptions
from numalign.device.plugin_host import connection
from numalign.device.plugin_host.changes import Disconnected, Listed, Registered
from numalign.device.plugin_host.connection import ConnectError
from numalign.device.plugin_host.host import LIST_PAUSE_SECONDS
from numalign.device.plugin_host.strategies import KUBELET, SAFE, HostStrategies
from numalign.device.ports import EmptyAllocation, PluginError
from numalign.kube.deviceplugin.v1beta1 import api_pb2 as dp
from numalign.model.ids import DeviceId
from numalign.provider.values import ContainerEdits, DeviceNode, Mount

A, B = DeviceId("a"), DeviceId("b")
Call = Callable[[World], Awaitable[Any]]

allocate: Call = lambda world: world.host.allocate(GPU, (A,))  # noqa: E731 - a table of calls
prefer: Call = lambda world: world.host.get_preferred_allocation(GPU, (A, B), (B,), 2)  # noqa: E731
pre_start: Call = lambda world: world.host.pre_start_container(GPU, (A,))  # noqa: E731
CALLS = [
    pytest.param("Allocate", allocate, id="allocate"),
    pytest.param("GetPreferredAllocation", prefer, id="prefer"),
    pytest.param("PreStartContainer", pre_start, id="pre-start"),
]
BOTH = [pytest.param(SAFE, id="safe"), pytest.param(KUBELET, id="kubelet")]


@pytest.mark.parametrize("strategies", BOTH)
async def test_connecting_asks_for_options_and_listens(strategies: HostStrategies) -> None:
    plugin = FakePlugin(options=dp.DevicePluginOptions(pre_start_required=True))
    async with hosting(strategies) as world, served(plugin, world.directory / "p"):
        plugin.send("a")
        await world.host.connect(GPU, world.directory / "p")
        await until(lambda: world.listed() == [("a",)])
        plugin.send("a", "b")
        await until(lambda: world.listed() == [("a",), ("a", "b")])

    assert world.reported[0] == Registered(GPU, PluginOptions(pre_start_required=True))
    assert [method for method, _ in plugin.asked] == ["GetDevicePluginOptions", "ListAndWatch"]


async def test_calls_carry_one_container_and_come_back_as_values() -> None:
    plugin = FakePlugin(
        preferred=dp.PreferredAllocationResponse(
            container_responses=[dp.ContainerPreferredAllocationResponse(deviceIDs=["b", "z", "a"])]
        ),
        allocated=dp.AllocateResponse(
            container_responses=[
                dp.ContainerAllocateResponse(
                    envs={"A": "1"},
                    mounts=[dp.Mount(container_path="/c", host_path="/h", read_only=True)],
                    devices=[
                        dp.DeviceSpec(container_path="/dev/c", host_path="/dev/h", permissions="rw")
                    ],
                    annotations={"k": "v"},
                    cdi_devices=[dp.CDIDevice(name="v.com/c=d")],
                ),
                dp.ContainerAllocateResponse(envs={"ignored": "1"}),
            ]
        ),
    )
    async with hosting() as world, served(plugin, world.directory / "p"):
        await world.host.connect(GPU, world.directory / "p")
        preferred = await prefer(world)
        edits = await allocate(world)
        await pre_start(world)

    assert preferred == ("b", "z", "a")
    assert edits == ContainerEdits(
        envs={"A": "1"},
        mounts=(Mount(container_path="/c", host_path="/h", read_only=True),),
        device_nodes=(DeviceNode(container_path="/dev/c", host_path="/dev/h", permissions="rw"),),
        annotations={"k": "v"},
        cdi_devices=("v.com/c=d",),
    )
    asked = {method: request for method, request in plugin.asked if method != "ListAndWatch"}
    assert asked["GetPreferredAllocation"] == dp.PreferredAllocationRequest(
        container_requests=[
            dp.ContainerPreferredAllocationRequest(
                available_deviceIDs=["a", "b"], must_include_deviceIDs=["b"], allocation_size=2
            )
        ]
    )
    assert asked["Allocate"] == dp.AllocateRequest(
        container_requests=[dp.ContainerAllocateRequest(devices_ids=["a"])]
    )
    assert asked["PreStartContainer"] == dp.PreStartContainerRequest(devices_ids=["a"])


async def test_answers_for_no_container() -> None:
    plugin = FakePlugin(allocated=dp.AllocateResponse())
    async with hosting() as world, served(plugin, world.directory / "p"):
        await world.host.connect(GPU, world.directory / "p")

        assert await prefer(world) == ()
        with pytest.raises(EmptyAllocation, match="no containers return in allocation response"):
            await allocate(world)


@pytest.mark.parametrize(("method", "call"), CALLS)
async def test_a_call_that_fails(method: str, call: Call) -> None:
    async def fail() -> None:
        raise Abort(StatusCode.UNKNOWN, "out of order")

    plugin = FakePlugin(before={method: fail})
    async with hosting() as world, served(plugin, world.directory / "p"):
        await world.host.connect(GPU, world.directory / "p")

        with pytest.raises(PluginError) as failed:
            await call(world)

    assert str(failed.value) == "rpc error: code = Unknown desc = out of order"


@pytest.mark.parametrize(("method", "call"), CALLS)
async def test_a_call_that_hangs_ends_before_the_admission_does(
    method: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PRE_START_SECONDS", 0.5)
    plugin = FakePlugin(before={method: hang})
    async with hosting(limit=0.5) as world, served(plugin, world.directory / "p"):
        await world.host.connect(GPU, world.directory / "p")
        with pytest.raises(PluginError) as failed:
            await asyncio.wait_for(call(world), PATIENCE)

    assert str(failed.value) == (
        "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
        if method == "PreStartContainer"
        else f"device plugin of {GPU} did not answer {method} within 0.45 s"
    )


async def test_one_that_hung_is_waited_for_less_until_it_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Others' pods wait for it as well."""
    monkeypatch.setattr(connection, "IMPATIENT_SECONDS", 0.1)
    plugin = FakePlugin(before={"Allocate": hang})
    async with hosting(limit=2.0) as world, served(plugin, world.directory / "p"):
        await world.host.connect(GPU, world.directory / "p")
        waited = [await refused_after(world) for _ in range(3)]
        plugin.before.clear()
        # On a busy machine an answer takes longer than a tenth of a second.
        monkeypatch.setattr(connection, "IMPATIENT_SECONDS", 30.0)
        await answered(world)
        monkeypatch.setattr(connection, "IMPATIENT_SECONDS", 0.1)
        plugin.before["Allocate"] = hang
        waited.append(await refused_after(world))

    assert waited == ["1.8 s", "0.1 s", "0.1 s", "1.8 s"]


async def test_one_that_hung_is_forgiven_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "IMPATIENT_SECONDS", 0.1)
    monkeypatch.setattr(connection, "FORGIVEN_SECONDS", 0.0)
    plugin = FakePlugin(before={"Allocate": hang})
    async with hosting(limit=0.5) as world, served(plugin, world.directory / "p"):
        await world.host.connect(GPU, world.directory / "p")

        assert [await refused_after(world) for _ in range(2)] == ["0.45 s", "0.45 s"]


async def answered(world: World) -> None:
    """Ask until there is an answer: the limit of the world is short for a busy machine."""
    while True:
        try:
            await world.host.allocate(GPU, (DeviceId("a"),))
        except PluginError:
            continue
        return


async def refused_after(world: World) -> str:
    """After how long Allocate was given up, as its refusal says."""
    with pytest.raises(PluginError) as failed:
        await world.host.allocate(GPU, (DeviceId("a"),))
    return str(failed.value).partition("within ")[2]


@pytest.mark.parametrize(("method", "call"), CALLS)
async def test_a_plugin_that_dies_during_a_call(method: str, call: Call) -> None:
    plugin = FakePlugin(before={method: hang})
    async with (
        hosting(limit=10 * PATIENCE) as world,
        served(plugin, world.directory / "p") as server,
    ):
        await world.host.connect(GPU, world.directory / "p")
        calling = asyncio.ensure_future(call(world))
        await until(lambda: any(asked == method for asked, _ in plugin.asked))
        await server.stop(0)

        with pytest.raises(PluginError):
            await asyncio.wait_for(calling, PATIENCE)


@pytest.mark.parametrize(("method", "call"), CALLS)
async def test_after_its_end_every_call_is_to_a_stopped_endpoint(method: str, call: Call) -> None:
    plugin = FakePlugin()
    async with hosting() as world, served(plugin, world.directory / "p"):
        await world.host.connect(GPU, world.directory / "p")
        await until(lambda: bool(plugin.lists))
        plugin.end_lists()
        await until(lambda: world.kinds() == ["Registered", "Disconnected"])
        await asyncio.sleep(0.05)

        with pytest.raises(PluginError) as failed:
            await call(world)

    assert str(failed.value) == f"endpoint {GPU} has been stopped"
    assert method not in [asked for asked, _ in plugin.asked]


async def test_the_end_is_reported_with_its_time() -> None:
    plugin = FakePlugin()
    async with hosting() as world, served(plugin, world.directory / "p"):
        await world.host.connect(GPU, world.directory / "p")
        await until(lambda: bool(plugin.lists))
        plugin.end_lists()
        await until(lambda: world.kinds() == ["Registered", "Disconnected"])

    assert world.reported[-1] == Disconnected(GPU, 7.0)
    assert world.listener.told[-1] == ("disconnected", GPU, "p", "it ended its device list")


async def test_a_resource_that_nobody_serves() -> None:
    async with hosting() as world:
        with pytest.raises(PluginError) as failed:
            await allocate(world)

    assert str(failed.value) == f"endpoint {GPU} has been stopped"


@pytest.mark.parametrize("strategies", BOTH)
async def test_nobody_answers_at_the_socket(
    strategies: HostStrategies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "DIAL_SECONDS", 0.2)
    async with hosting(strategies) as world:
        with pytest.raises(ConnectError) as failed:
            await world.host.connect(GPU, world.directory / "nobody")

    assert str(failed.value) == "failed to dial device plugin: context deadline exceeded"
    assert world.reported == []


async def test_a_plugin_without_options() -> None:
    async def fail() -> None:
        raise Abort(StatusCode.UNIMPLEMENTED, "unknown method")

    plugin = FakePlugin(before={"GetDevicePluginOptions": fail})
    async with hosting() as world, served(plugin, world.directory / "p"):
        with pytest.raises(ConnectError) as failed:
            await world.host.connect(GPU, world.directory / "p")

    assert str(failed.value) == (
        "failed to get device plugin options: rpc error: code = Unimplemented desc = unknown method"
    )


@pytest.mark.parametrize(
    ("strategies", "reported", "connected"),
    [
        pytest.param(SAFE, ["Registered", "Registered"], True, id="safe"),
        pytest.param(
            KUBELET, ["Registered", "Registered", "Disconnected"], False, id="kubelet-DEV-T7"
        ),
    ],
)
async def test_the_late_end_of_the_old_stream(
    strategies: HostStrategies, reported: list[str], connected: bool
) -> None:
    old, new = FakePlugin(), FakePlugin()
    async with (
        hosting(strategies) as world,
        served(old, world.directory / "old") as server,
        served(new, world.directory / "new"),
    ):
        await world.host.connect(GPU, world.directory / "old")
        await until(lambda: bool(old.lists))
        await world.host.connect(GPU, world.directory / "new")
        await until(lambda: bool(new.lists))
        await server.stop(0)
        await until(lambda: world.kinds() == reported)
        await asyncio.sleep(0.2)

        assert world.kinds() == reported
        if connected:
            assert await allocate(world) == ContainerEdits(envs={"A": "1"})
            assert "Allocate" in [method for method, _ in new.asked]


@pytest.mark.parametrize(
    ("strategies", "reported"),
    [
        pytest.param(SAFE, ["Registered", "Disconnected"], id="safe"),
        pytest.param(KUBELET, ["Registered"], id="kubelet-DEV-T8"),
    ],
)
async def test_a_newcomer_that_cannot_be_reached_and_the_old_one(
    strategies: HostStrategies, reported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = FakePlugin()
    async with hosting(strategies) as world, served(old, world.directory / "old") as server:
        await world.host.connect(GPU, world.directory / "old")
        await until(lambda: bool(old.lists))
        monkeypatch.setattr(connection, "DIAL_SECONDS", 0.2)
        with pytest.raises(ConnectError):
            await world.host.connect(GPU, world.directory / "nobody")
        assert await allocate(world) == ContainerEdits(envs={"A": "1"})
        await server.stop(0)
        await until(lambda: world.kinds() == reported)
        await asyncio.sleep(0.3)

    assert world.kinds() == reported


async def test_a_flood_of_lists_is_thinned_and_ends_with_the_last() -> None:
    plugin = FakePlugin()
    async with hosting() as world, served(plugin, world.directory / "p"):
        await world.host.connect(GPU, world.directory / "p")
        await until(lambda: bool(plugin.lists))
        clock = asyncio.get_running_loop().time
        begun = clock()
        for number in range(2000):
            plugin.send(f"d{number}")
        await until(lambda: bool(world.listed()) and world.listed()[-1] == ("d1999",))
        pauses = (clock() - begun) / LIST_PAUSE_SECONDS

    # One before each pause, and the empty list before all of them, however long it takes.
    assert len(world.listed()) <= pauses + 3


async def test_oddities_are_told_once_while_they_last() -> None:
    plugin = FakePlugin()
    odd = dp.ListAndWatchResponse(
        devices=[dp.Device(ID="a", topology=dp.TopologyInfo(nodes=[dp.NUMANode(ID=9)]))]
    )
    plugin.last = odd
    async with hosting() as world, served(plugin, world.directory / "p"):
        await world.host.connect(GPU, world.directory / "p")
        await until(lambda: len(world.listed()) == 1)
        plugin.lists[0].put_nowait(odd)
        await until(lambda: len(world.listed()) == 2)

    lists = [change for change in world.reported if isinstance(change, Listed)]
    assert [change.devices[0].numa_nodes for change in lists] == [None, None]
    assert [told for told in world.listener.told if told[0] == "odd"] == [
        ("odd", GPU, 'device "a" is on NUMA node 9, which is not here')
    ]


async def test_closing_ends_everything_and_takes_nobody_in() -> None:
    plugin = FakePlugin()
    async with hosting() as world, served(plugin, world.directory / "p"):
        await world.host.connect(GPU, world.directory / "p")
        await world.host.close()

        with pytest.raises(ConnectError):
            await world.host.connect(GPU, world.directory / "p")
        with pytest.raises(PluginError):
            await allocate(world)

    assert world.kinds() == ["Registered"]

"""NUMA nodes that cannot be, in what a kubelet tells: left out, told of once, counted."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from tests.unit.device.device_world import GPU
from tests.unit.device.kubelet.kubelet_world import Kubelet, bare, told, told_pod

from numalign.device.kubelet.judged import JudgedKubelet
from numalign.device.kubelet.values import PodKey, ToldDevice
from numalign.device.listing import UNKNOWN_NODE, Oddity, listed_as_sent, listed_safely
from numalign.device.observer import OddDevices
from numalign.telemetry.metrics import Metrics
from numalign.telemetry.own_metrics import DEVICE_PLUGINS

NODES = (0, 1)
SECONDS = 1.0


class World:
    """A kubelet, judged; `odd` is what was told of it, in order."""

    def __init__(self, *devices: ToldDevice) -> None:
        self.kubelet = Kubelet(devices)
        self.odd: list[tuple[str, list[str]]] = []
        self.judged = JudgedKubelet(self.kubelet, listed_safely, NODES, self._hear)

    def _hear(self, resource: str, oddities: Iterable[Oddity]) -> None:
        self.odd.append((resource, [odd.what for odd in oddities]))


@pytest.mark.parametrize(
    ("one", "counts"),
    [
        pytest.param(told("a", 0), told("a", 0), id="known"),
        pytest.param(told("a"), told("a"), id="topology-without-nodes"),
        pytest.param(bare("a"), bare("a"), id="no-topology"),
        pytest.param(told("a", -1), bare("a"), id="negative"),
        pytest.param(told("a", 7), bare("a"), id="unknown"),
        pytest.param(told("a", -1, 1), told("a", 1), id="negative-beside-known"),
        pytest.param(told("a", 64), bare("a"), id="beyond-every-mask"),
    ],
)
async def test_nodes_that_are_not_here_say_nothing(one: ToldDevice, counts: ToldDevice) -> None:
    world = World(one)
    world.kubelet.give(told_pod("p", {"c": (one,)}))

    assert await world.judged.allocatable(SECONDS) == (counts,)
    assert await world.judged.pods(SECONDS) == (told_pod("p", {"c": (counts,)}),)
    assert await world.judged.pod(PodKey("default", "p"), SECONDS) == told_pod(
        "p", {"c": (counts,)}
    )


async def test_as_sent_nothing_is_judged() -> None:
    kubelet = Kubelet((told("a", -1), told("b", 7)))
    judged = JudgedKubelet(kubelet, listed_as_sent, NODES, lambda *_: pytest.fail("told"))

    assert await judged.allocatable(SECONDS) == kubelet.devices


async def test_an_oddity_is_told_when_it_comes_not_at_every_poll() -> None:
    world = World(told("a", 7), told("n", -1, resource="example.com/nic"))
    odd_a = 'device "a" is on NUMA node 7, which is not here'
    odd_n = 'device "n" is on NUMA node -1, which is not here'
    world.kubelet.give(told_pod("p", {"c": (told("a", 7),)}))

    for _ in range(2):
        await world.judged.allocatable(SECONDS)
        await world.judged.pods(SECONDS)
        await world.judged.pod(PodKey("default", "p"), SECONDS)

    assert world.odd == [(GPU, [odd_a]), ("example.com/nic", [odd_n])]


async def test_an_oddity_that_comes_back_is_told_again() -> None:
    world = World(told("a", 7))

    await world.judged.allocatable(SECONDS)
    world.kubelet.devices = (told("a", 0),)
    await world.judged.allocatable(SECONDS)
    world.kubelet.devices = (told("a", 7),)
    await world.judged.allocatable(SECONDS)

    assert len(world.odd) == 2


async def test_a_device_told_once_for_each_node_is_not_odd() -> None:
    world = World(told("a", 0), told("a", 1))

    assert len(await world.judged.allocatable(SECONDS)) == 2
    assert world.odd == []


async def test_no_pod_is_no_pod() -> None:
    assert await World().judged.pod(PodKey("default", "p"), SECONDS) is None


def test_oddities_are_counted_by_resource_and_kind() -> None:
    metrics = Metrics(DEVICE_PLUGINS, enabled=True)
    odd_devices = OddDevices(metrics)

    odd_devices.told(GPU, [Oddity(UNKNOWN_NODE, "a"), Oddity(UNKNOWN_NODE, "b")])

    assert (
        'numalign_device_plugin_odd_devices_total{kind="unknown-numa-node",'
        f'resource_name="{GPU}"}} 2.0'
    ) in metrics.text()

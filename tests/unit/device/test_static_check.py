"""Configured devices that cannot be on this machine."""

from __future__ import annotations

import pytest
from tests.unit.device.device_world import GPU, NIC

from numalign.device.listing import listed_as_sent, listed_safely
from numalign.device.static_check import device_problems
from numalign.model.ids import DeviceId
from numalign.model.settings import StaticDevice, StaticResource

NODES = (0, 1)


def resource(name: str, *numa_nodes: tuple[int, ...] | None) -> StaticResource:
    devices = tuple(
        StaticDevice(id=DeviceId(f"d{number}"), numa_nodes=nodes)
        for number, nodes in enumerate(numa_nodes)
    )
    return StaticResource(resource=name, devices=devices)


@pytest.mark.parametrize("nodes", [None, (), (0,), (0, 1)])
def test_devices_on_nodes_that_are_there(nodes: tuple[int, ...] | None) -> None:
    assert list(device_problems([resource(GPU, nodes)], listed_safely, NODES)) == []


def test_every_device_elsewhere_is_named_with_its_field() -> None:
    configured = [resource(GPU, (0,), (0, 2)), resource(NIC, (7, 9))]

    assert list(device_problems(configured, listed_safely, NODES)) == [
        (
            'numalign.devices[0].devices[1].numa_nodes: device "d1" is on NUMA node 2, '
            "which is not here"
        ),
        (
            'numalign.devices[1].devices[0].numa_nodes: device "d0" is on NUMA node 7, 9, '
            "which is not here"
        ),
    ]


def test_as_sent_a_device_may_be_anywhere() -> None:
    assert list(device_problems([resource(GPU, (7,))], listed_as_sent, NODES)) == []

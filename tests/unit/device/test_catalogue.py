"""What is worked out of an inventory, and that it is worked out again only where it must be."""

from __future__ import annotations

from tests.unit.device.device_world import GPU, NIC, bare, device, ids, inventory

from numalign.device.capacity import capacity
from numalign.device.catalogue import catalogue
from numalign.device.inventory import (
    Inventory,
    PluginOptions,
    list_received,
    plugin_disconnected,
    plugin_registered,
)

NODES = (0, 1)
BEFORE = inventory({GPU: (device("b", 0), device("a", 1)), NIC: (device("n", 0),)}, None)


def test_every_reported_resource_has_a_layout_and_is_served() -> None:
    known = catalogue(BEFORE, NODES)

    assert known.served == (GPU, NIC)
    assert known.layout(GPU).nodes == (0, 1)
    assert known.layout(NIC).nodes == (0,)


def test_a_resource_that_nobody_reported_has_no_devices() -> None:
    assert catalogue(Inventory(), NODES).layout(GPU).topologies == {}


def test_a_flip_of_health_leaves_layouts_alone() -> None:
    known = catalogue(BEFORE, NODES)

    flipped = known.over(
        list_received(BEFORE, GPU, (device("b", 0, health="Sick"), device("a", 1)))
    )

    assert flipped.inventory.of(GPU).healthy == frozenset(ids("a"))
    assert flipped.layout(GPU) is known.layout(GPU)


def test_another_topology_is_another_layout() -> None:
    known = catalogue(BEFORE, NODES)

    moved = known.over(list_received(BEFORE, GPU, (device("b", 0), bare("a"))))

    assert moved.layout(GPU).nodes == (0,)
    assert moved.layout(NIC) is known.layout(NIC)


def test_a_resource_is_served_from_its_first_list_on() -> None:
    known = catalogue(Inventory(), NODES)

    assert known.over(plugin_registered(Inventory(), GPU, PluginOptions())).served == ()


def test_a_resource_whose_plugin_left_is_served_until_it_is_given_up() -> None:
    known = catalogue(BEFORE, NODES)
    left = plugin_disconnected(BEFORE, GPU, now=1.0)

    assert known.over(left).served == (GPU, NIC)
    assert known.over(capacity(left, now=1000.0).inventory).served == (NIC,)

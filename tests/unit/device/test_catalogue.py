"""What is worked out of an inventory, and that it is worked out again only where it must be."""

from __future__ import annotations

from tests.unit.device.device_world import GPU, NIC, bare, device, ids, inventory

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


def test_every_reported_resource_has_a_layout_and_its_healthy_ids() -> None:
    known = catalogue(BEFORE, NODES)

    assert known.registered == {GPU: ids("a", "b"), NIC: ids("n")}
    assert known.layout(GPU).nodes == (0, 1)
    assert known.layout(NIC).nodes == (0,)


def test_a_resource_that_nobody_reported_has_no_devices() -> None:
    assert catalogue(Inventory(), NODES).layout(GPU).topologies == {}


def test_a_flip_of_health_changes_the_healthy_ids_alone() -> None:
    known = catalogue(BEFORE, NODES)

    flipped = known.over(
        list_received(BEFORE, GPU, (device("b", 0, health="Sick"), device("a", 1)))
    )

    assert flipped.registered == {GPU: ids("a"), NIC: ids("n")}
    assert flipped.layout(GPU) is known.layout(GPU)
    assert flipped.registered[NIC] is known.registered[NIC]


def test_another_topology_is_another_layout() -> None:
    known = catalogue(BEFORE, NODES)

    moved = known.over(list_received(BEFORE, GPU, (device("b", 0), bare("a"))))

    assert moved.layout(GPU).nodes == (0,)
    assert moved.layout(NIC) is known.layout(NIC)


def test_a_registered_resource_without_a_list_has_no_healthy_ids_yet() -> None:
    known = catalogue(Inventory(), NODES)

    assert known.over(plugin_registered(Inventory(), GPU, PluginOptions())).registered == {}


def test_nothing_is_healthy_after_the_plugin_left() -> None:
    known = catalogue(BEFORE, NODES)

    assert known.over(plugin_disconnected(BEFORE, GPU, now=1.0)).registered[GPU] == ()

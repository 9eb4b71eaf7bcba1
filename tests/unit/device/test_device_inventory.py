"""Device lists, registration, loss of a plugin, and the numbers a node reports."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.device.device_world import GPU, NIC, bare, device, ids, inventory

from numalign.device.capacity import STOP_GRACE_SECONDS, capacity
from numalign.device.catalogue import catalogue
from numalign.device.inventory import (
    Endpoint,
    Inventory,
    PluginOptions,
    health_changes,
    list_received,
    plugin_disconnected,
    plugin_registered,
    restored,
)
from numalign.device.metrics import resource_numbers
from numalign.device.state import DeviceState, with_taken


@pytest.mark.parametrize(
    ("text", "healthy"),
    [
        pytest.param("Healthy", True, id="the-one-word"),
        pytest.param("healthy", False, id="other-case"),
        pytest.param("", False, id="empty"),
        pytest.param("Unhealthy", False, id="unhealthy"),
    ],
)
def test_only_one_health_text_is_healthy(text: str, healthy: bool) -> None:
    known = inventory({GPU: (device("a", 0, health=text),)}).of(GPU)

    assert ("a" in (known.healthy or ())) is healthy
    assert ("a" in (known.unhealthy or ())) is not healthy


def health(known: Inventory, resource: str = GPU) -> tuple[str | None, str | None]:
    """The healthy and the unhealthy ids, each joined into one word; None for no entry."""
    found = known.of(resource)
    healthy = None if found.healthy is None else "".join(sorted(found.healthy))
    return healthy, None if found.unhealthy is None else "".join(sorted(found.unhealthy))


def test_a_list_replaces_everything_known_of_the_resource() -> None:
    before = inventory({GPU: (device("a", 0), device("b", 1, health="Sick"))})

    after = list_received(before, GPU, [device("c", 1)])

    assert set(after.of(GPU).devices) == {"c"}
    assert health(after) == ("c", "")
    assert after.of(GPU).endpoint == before.of(GPU).endpoint
    assert set(before.of(GPU).devices) == {"a", "b"}


def test_a_repeated_id_is_listed_once_and_may_be_in_both_health_sets() -> None:
    known = inventory({GPU: (device("a", 0), device("a", 1, health="Sick"))})

    assert dict(known.of(GPU).devices) == {ids("a")[0]: device("a", 1, health="Sick")}
    assert health(known) == ("a", "a")


def test_health_changes_are_new_ids_and_other_texts_but_not_vanished_ids() -> None:
    known = inventory({GPU: (device("a", 0), device("b", 0), device("gone", 0))})

    changed = health_changes(known, GPU, [device("a", 0), device("b", 0, health="?"), bare("new")])

    assert changed == {"b", "new"}


def test_losing_the_plugin_makes_healthy_devices_unhealthy_and_stops_the_endpoint() -> None:
    known = inventory({GPU: (device("a", 0), device("b", 0, health="Sick"))})

    lost = plugin_disconnected(known, GPU, now=7.0)

    assert health(lost) == ("", "ab")
    endpoint = lost.of(GPU).endpoint
    assert endpoint is not None
    assert endpoint.stopped_at == 7.0
    assert lost.of(GPU).devices == known.of(GPU).devices


def test_losing_a_plugin_without_endpoint_changes_nothing() -> None:
    known = list_received(Inventory(), GPU, [device("a", 0)])

    assert plugin_disconnected(known, GPU, now=7.0) == known


def test_registering_again_gives_a_fresh_endpoint_and_leaves_the_devices() -> None:
    lost = plugin_disconnected(inventory({GPU: (device("a", 0),)}), GPU, now=7.0)
    options = PluginOptions(pre_start_required=True)

    back = plugin_registered(lost, GPU, options)

    assert back.of(GPU) == replace(lost.of(GPU), endpoint=Endpoint(options=options))


def test_a_restart_knows_names_only_and_leaves_registered_resources_alone() -> None:
    known = inventory({GPU: (device("a", 0),)})

    after = restored(known, [GPU, NIC])

    assert after.of(GPU) == known.of(GPU)
    assert health(after, NIC) == ("", "")
    assert after.of(NIC).endpoint == Endpoint(options=None, stopped_at=0.0)
    assert catalogue(after, (0, 1)).served == (GPU, NIC)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        pytest.param(10.0, ({GPU: 2}, {GPU: 0}, ()), id="just-lost"),
        pytest.param(10.0 + STOP_GRACE_SECONDS, ({GPU: 2}, {GPU: 0}, ()), id="last-moment"),
        pytest.param(10.1 + STOP_GRACE_SECONDS, ({}, {}, (GPU,)), id="given-up"),
    ],
)
def test_a_lost_plugin_keeps_capacity_for_the_grace_period(
    now: float, expected: tuple[dict[str, int], dict[str, int], tuple[str, ...]]
) -> None:
    known = inventory({GPU: (device("a", 0), device("b", 0, health="Sick"))})

    numbers = capacity(plugin_disconnected(known, GPU, now=10.0), now)

    assert (numbers.capacity, numbers.allocatable, numbers.deleted) == expected


def test_a_present_plugin_counts_healthy_as_allocatable() -> None:
    numbers = capacity(inventory({GPU: (device("a", 0), device("b", 0, health="Sick"))}), 1e9)

    assert (numbers.capacity, numbers.allocatable) == ({GPU: 2}, {GPU: 1})


def test_a_resource_without_endpoint_is_deleted_but_its_list_stays() -> None:
    numbers = capacity(list_received(Inventory(), GPU, [device("a", 0)]), 0.0)

    assert numbers.deleted == (GPU,)
    assert health(numbers.inventory) == (None, None)
    assert numbers.inventory.of(GPU).endpoint is None
    assert set(numbers.inventory.of(GPU).devices) == {"a"}
    assert capacity(numbers.inventory, 0.0).deleted == ()


def test_a_restored_resource_shows_zero_at_once() -> None:
    numbers = capacity(restored(Inventory(), [GPU]), 1.0)

    assert (numbers.capacity, numbers.allocatable) == ({GPU: 0}, {GPU: 0})


def test_numbers_cover_reported_and_used_resources() -> None:
    state = with_taken(DeviceState(), NIC, ids("n"))

    numbers = resource_numbers(inventory({GPU: (device("a", 0), bare("b", "Sick"))}), state)

    assert [(n.resource, n.healthy, n.unhealthy, n.allocated) for n in numbers] == [
        (GPU, 1, 1, 0),
        (NIC, 0, 0, 1),
    ]

"""Health of devices that pods hold, by the two rules."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.device.device_world import (
    GPU,
    NIC,
    SAFE,
    container,
    device,
    engine,
    hint,
    ids,
    inventory,
    pod,
    run,
)

from numalign.device.capacity import capacity
from numalign.device.health import (
    HealthOf,
    UnhealthyDevice,
    known_at_present,
    last_reported,
    unhealthy_devices,
)
from numalign.device.inventory import (
    Inventory,
    PluginOptions,
    list_received,
    plugin_disconnected,
    plugin_registered,
    restored,
)
from numalign.device.messages import DeviceBooks
from numalign.device.state import DeviceState
from numalign.provider.engine import Sources

(A,) = ids("a")
LISTED = inventory({GPU: (device("a", 0), device("b", 0, health="Sick"))}, None)


def sick(known: Inventory) -> Inventory:
    return list_received(known, GPU, (device("a", 0, health=""),))


def left(known: Inventory) -> Inventory:
    return plugin_disconnected(known, GPU, now=1.0)


def vanished(known: Inventory) -> Inventory:
    return list_received(known, GPU, (device("b", 0),))


def restarted(known: Inventory) -> Inventory:
    return restored(Inventory(), (GPU,), awaited=True)


def back_without_list(known: Inventory) -> Inventory:
    return plugin_registered(restarted(known), GPU, PluginOptions())


@pytest.mark.parametrize(
    ("change", "kubelet", "safe"),
    [
        pytest.param(lambda known: known, "Healthy", "Healthy", id="healthy"),
        pytest.param(sick, "Unhealthy", "Unhealthy", id="any-other-text"),
        pytest.param(left, "Healthy", "Unknown", id="plugin-left"),
        pytest.param(vanished, "Healthy", "Unknown", id="not-listed-any-more"),
        pytest.param(restarted, "Healthy", "Unknown", id="plugin-not-back"),
        pytest.param(back_without_list, "Healthy", "Unknown", id="plugin-back-without-a-list"),
        pytest.param(lambda _: Inventory(), "Healthy", "Unknown", id="resource-given-up"),
    ],
)
def test_health_by_both_rules(
    change: Callable[[Inventory], Inventory], kubelet: str, safe: str
) -> None:
    changed = change(LISTED)

    assert last_reported(changed, GPU, A) == kubelet
    assert known_at_present(changed, GPU, A) == safe


@pytest.mark.parametrize("health_of", [last_reported, known_at_present])
def test_only_devices_that_are_held_and_not_healthy_are_told(health_of: HealthOf) -> None:
    world = engine(device("a", 0), device("b", 0), nics=(device("a", 0),), strategies=SAFE)
    asked = pod(container("z", gpu=1), container("c", gpu=1, nic=1))
    state = DeviceState()
    for each in asked.containers:
        state = run(world.allocate(state, asked, each, hint(0), Sources())).state
    changed = list_received(
        world.inventory,
        GPU,
        (device("a", 0, health="Sick"), device("b", 0, health="Sick"), device("x", 0, health="")),
    )

    assert tuple(unhealthy_devices(changed, state, health_of)) == tuple(
        UnhealthyDevice(pod_uid=asked.uid, container=name, resource=GPU, id=id_, health="Unhealthy")
        for name, id_ in zip("cz", ids("b", "a"), strict=True)
    )
    assert list(unhealthy_devices(world.inventory, state, health_of)) == []


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(left, id="plugin-left"),
        pytest.param(vanished, id="not-listed-any-more"),
        pytest.param(restarted, id="plugin-not-back"),
        pytest.param(back_without_list, id="plugin-back-without-a-list"),
        pytest.param(lambda i: capacity(left(i), 1000.0).inventory, id="resource-given-up"),
    ],
)
def test_held_devices_whose_health_nobody_tells(change: Callable[[Inventory], Inventory]) -> None:
    world = engine(device("a", 0), device("b", 0), strategies=SAFE)
    asked = pod(container(gpu=1))
    state = run(world.allocate(DeviceState(), asked, asked.containers[0], hint(0), Sources())).state
    changed = change(world.inventory)

    (told,) = unhealthy_devices(changed, state, known_at_present)
    assert (told.id, told.health) == ("a", "Unknown")
    assert list(unhealthy_devices(changed, state, last_reported)) == []


def test_books_tell_them() -> None:
    world = engine(device("a", 0), nics=(device("n", 0),), strategies=SAFE)
    asked = pod(container("c", gpu=1, nic=1))
    state = run(world.allocate(DeviceState(), asked, asked.containers[0], hint(0), Sources())).state
    world.update_inventory(list_received(world.inventory, NIC, (device("n", 0, health="Sick"),)))

    (told,) = DeviceBooks(world).unhealthy_message(state).devices

    assert (told.pod_uid, told.container, told.resource, told.id, told.health) == (
        asked.uid,
        "c",
        NIC,
        "n",
        "Unhealthy",
    )

"""Not yet instead of never: resources that were known before the start and are not back."""

from __future__ import annotations

import pytest
from tests.unit.device.device_world import (
    GPU,
    KUBELET,
    SAFE,
    Plugins,
    active,
    change,
    container,
    device,
    engine,
    hint,
    machine,
    pod,
    run,
)

from numalign.device.capacity import STOP_GRACE_SECONDS, capacity
from numalign.device.engine import DeviceEngine, build_engine
from numalign.device.inventory import (
    Inventory,
    PluginOptions,
    list_received,
    plugin_registered,
    waited_out,
)
from numalign.device.state import DeviceState
from numalign.device.strategies import DeviceStrategies
from numalign.errors import Deferred
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Pod

WAITING = DeviceStrategies(allocate_in_place=False, retry_after=2.0)
ASKING = pod(container(gpu=1))


def restarted(strategies: DeviceStrategies = WAITING) -> tuple[DeviceEngine, DeviceState]:
    """An engine that knows from its books that there was a plugin for GPUs."""
    before = engine(device("a", 0), device("b", 1), strategies=SAFE)
    stored = before.encode(before.start(None).state)
    world = build_engine(Inventory(), machine(0, 1), FeatureGates(), Plugins(), strategies)
    return world, world.start(stored).state


def hints(world: DeviceEngine, state: DeviceState, asking: Pod = ASKING) -> object:
    return world.topology_hints(state, asking, asking.containers[0], active()).hints


def test_a_pod_that_asks_for_it_is_not_judged() -> None:
    world, state = restarted()

    with pytest.raises(Deferred) as deferred:
        hints(world, state)

    assert deferred.value.reason == "DevicePluginNotReady"
    assert str(deferred.value) == (
        f"the device plugin of {GPU} has not reported since the device provider started"
    )
    assert deferred.value.retry_after == 2.0


def test_nor_as_a_whole_nor_without_hints() -> None:
    world, state = restarted()

    with pytest.raises(Deferred):
        world.pod_topology_hints(state, ASKING, active())
    with pytest.raises(Deferred):
        run(world.allocate(state, ASKING, ASKING.containers[0], hint(0), active()))


def test_others_are_judged() -> None:
    world, state = restarted()

    assert hints(world, state, pod(container(nic=1))) == {}


def test_what_a_claim_backs_is_not_waited_for() -> None:
    world, state = restarted()
    claimed = pod(container(gpu=1), claimed_resources=frozenset({("app", GPU)}))

    assert hints(world, state, claimed) == {GPU: None}


def test_registering_alone_is_not_reporting() -> None:
    world, state = restarted()
    change(world, lambda inventory: plugin_registered(inventory, GPU, PluginOptions()))

    with pytest.raises(Deferred):
        hints(world, state)


def test_after_the_list_it_is_judged() -> None:
    world, state = restarted()
    change(
        world,
        lambda inventory: plugin_registered(inventory, GPU, PluginOptions()),
        lambda inventory: list_received(inventory, GPU, (device("a", 0),)),
    )

    assert hints(world, state) == {GPU: (hint(0),)}


def test_an_empty_list_is_a_report() -> None:
    world, state = restarted()
    change(world, lambda inventory: list_received(inventory, GPU, ()))

    assert hints(world, state) == {GPU: None}


@pytest.mark.parametrize(
    "strategies", [pytest.param(SAFE, id="not-waiting"), pytest.param(KUBELET, id="kubelet")]
)
def test_without_waiting_the_kubelet_s_refusal(strategies: DeviceStrategies) -> None:
    world, state = restarted(strategies)

    assert hints(world, state) == {GPU: None}
    outcome = run(world.allocate(state, ASKING, ASKING.containers[0], hint(0), active()))
    assert outcome.failure is not None
    assert outcome.failure.message == (
        f"no healthy devices present; cannot allocate unhealthy devices {GPU}"
    )


def test_the_wait_can_end() -> None:
    world, state = restarted()
    change(world, waited_out)

    assert hints(world, state) == {GPU: None}


def test_nothing_to_wait_out_is_the_same_inventory() -> None:
    world = engine(device("a", 0))

    assert waited_out(world.inventory) is world.inventory


def test_what_is_waited_for_is_not_given_up() -> None:
    world, _ = restarted()
    late = STOP_GRACE_SECONDS + 1

    assert capacity(world.inventory, late).deleted == ()
    assert capacity(waited_out(world.inventory), late).deleted == (GPU,)


@pytest.mark.parametrize(
    ("strategies", "unsealed"),
    [pytest.param(SAFE, True, id="told-last"), pytest.param(KUBELET, False, id="told-in-place")],
)
def test_unsealed_until_the_plugins_were_told(strategies: DeviceStrategies, unsealed: bool) -> None:
    world = engine(device("a", 0), strategies=strategies)
    state = world.start(None).state

    taken = run(world.allocate(state, ASKING, ASKING.containers[0], hint(0), active()))
    sealed = run(world.seal(taken.state, ASKING))
    again = run(world.allocate(sealed.state, ASKING, ASKING.containers[0], hint(0), active(ASKING)))

    assert taken.unsealed is unsealed
    assert not sealed.unsealed
    assert not again.unsealed

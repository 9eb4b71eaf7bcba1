"""The traps of the device specification, one test each (DEV-T1..T21).

DEV-T8 and DEV-T16 are about the table of connections and the register request, which this
part does not have.
"""

from __future__ import annotations

import pytest
from tests.unit.device.device_world import (
    GPU,
    KUBELET,
    SAFE,
    Plugins,
    active,
    bare,
    change,
    container,
    device,
    engine,
    hint,
    ids,
    inventory,
    machine,
    pod,
    run,
)

from numalign.device.capacity import STOP_GRACE_SECONDS, capacity
from numalign.device.engine import DeviceEngine, build_engine
from numalign.device.errors import ContainerNotPrepared, DeviceFault
from numalign.device.health import last_reported
from numalign.device.inventory import (
    HEALTHY,
    Device,
    Inventory,
    PluginOptions,
    health_changes,
    list_received,
    plugin_disconnected,
    plugin_registered,
)
from numalign.device.ports import EmptyAllocation, PluginError
from numalign.device.state import DeviceState
from numalign.device.strategies import DeviceStrategies
from numalign.model.feature_gates import FeatureGates
from numalign.model.hint import NO_HINT, HintList, TopologyHint
from numalign.model.pod import Container, Pod
from numalign.model.settings import PreferredAllocation
from numalign.provider.engine import Allocated, Sources


def take(
    world: DeviceEngine,
    state: DeviceState,
    who: Pod,
    *,
    of: Container | None = None,
    under: TopologyHint = NO_HINT,
    sources: Sources | None = None,
) -> Allocated[DeviceState]:
    return run(world.allocate(state, who, of or who.containers[0], under, sources or Sources()))


def hints_for(world: DeviceEngine, state: DeviceState, who: Pod) -> HintList:
    hinted = world.topology_hints(state, who, who.containers[0], Sources()).hints
    assert hinted is not None
    return hinted[GPU]


def held(state: DeviceState, who: Pod, name: str) -> set[str]:
    record = state.record(who.uid, name, GPU)
    return set() if record is None else set(record.ids())


def test_t1_health_is_ignored_for_reused_devices() -> None:
    world = engine(device("b", 0), device("c", 0), device("z", 0))
    first = container("first", init=True, gpu=2)
    who = pod(first, container(gpu=1))
    state = take(world, DeviceState(), who, of=first).state
    sick = (device("b", 0, health="Sick"), device("c", 0, health="Sick"), device("z", 0))
    change(world, lambda i: list_received(i, GPU, sick))

    done = take(world, state, who)

    assert done.failure is None
    assert held(done.state, who, "app") == {"b"}


def test_t2_a_request_of_zero_can_fail_and_fits_every_mask() -> None:
    who = pod(container(gpu=0))
    assert hints_for(engine(device("a", 0), device("b", 1)), DeviceState(), who) == (
        hint(0),
        hint(1),
        hint(0, 1, preferred=False),
    )

    done = take(engine(device("a", 0, health="Sick")), DeviceState(), who)

    assert done.failure is not None
    assert done.failure.message == (
        f"no healthy devices present; cannot allocate unhealthy devices {GPU}"
    )


def test_t3_devices_without_topology_do_not_count_in_hints() -> None:
    world = engine(device("a", 0), device("b", 0), device("c", 1), bare("d"))

    assert hints_for(world, DeviceState(), pod(container(gpu=4))) == ()


def test_t4_preferred_is_judged_on_all_devices() -> None:
    world = engine(device("a", 0), device("b", 0), device("c", 1), device("d", 1))
    one = pod(container(gpu=1), uid="one")
    two = pod(container(gpu=1), uid="two")
    state = take(world, DeviceState(), one, under=hint(0)).state
    state = take(world, state, two, under=hint(1)).state

    assert hints_for(world, state, pod(container(gpu=2))) == (hint(0, 1, preferred=False),)


FIVE = (device("a", 0), device("b", 0), device("c", 1), device("d", 1), bare("e"))


@pytest.mark.parametrize(
    ("needed", "asked"),
    [
        pytest.param(1, [("prefer", GPU, ids("c", "d"), (), 1)], id="fewer-than-aligned"),
        pytest.param(2, [], id="exactly-aligned"),
        pytest.param(3, [("prefer", GPU, ids(*"abcde"), ids("c", "d"), 3)], id="more-than-aligned"),
    ],
)
def test_t5_exactly_enough_aligned_devices_ask_nobody(
    needed: int, asked: list[tuple[object, ...]]
) -> None:
    plugins = Plugins()

    take(engine(*FIVE, plugins=plugins), DeviceState(), pod(container(gpu=needed)), under=hint(1))

    assert [told for told in plugins.told if told[0] == "prefer"] == asked


def test_t6_phantoms_stay_until_another_pod_is_freed() -> None:
    plugins = Plugins(preferred=PreferredAllocation.ERROR)
    world = engine(*FIVE, plugins=plugins)
    other, who = pod(container(gpu=2), uid="other"), pod(container(gpu=3))
    state = take(world, DeviceState(), other, under=hint(0)).state

    state = take(world, state, who, under=hint(1)).state

    assert state.allocated[GPU] == {"a", "b", "c", "d"}
    assert world.pods(state) == {"other"}
    assert world.remove_stale(state, active(other)).allocated[GPU] == {"a", "b", "c", "d"}
    assert world.remove_stale(state, active()).allocated == {}


@pytest.mark.parametrize(
    ("error", "left"),
    [
        pytest.param(EmptyAllocation("{}"), {"c", "d"}, id="empty-answer"),
        pytest.param(PluginError("x"), set(), id="a-failing-allocate-cleans-up"),
    ],
)
def test_t6_phantoms_of_allocate(error: PluginError, left: set[str]) -> None:
    world = engine(*FIVE, plugins=Plugins(allocate_error={GPU: error}))

    state = take(world, DeviceState(), pod(container(gpu=2)), under=hint(1)).state

    assert set(state.allocated.get(GPU, ())) == left


def test_t7_a_late_end_of_the_old_stream_stops_the_new_endpoint() -> None:
    known = inventory({GPU: (device("a", 0),)})
    known = plugin_registered(known, GPU, PluginOptions())

    known = plugin_disconnected(known, GPU, now=1.0)

    numbers = capacity(known, 2.0)
    assert (numbers.capacity, numbers.allocatable) == ({GPU: 1}, {GPU: 0})


def test_t9_a_vanished_device_is_refused_with_a_reason() -> None:
    world = engine(device("c", 0))
    who = pod(container(gpu=1))
    state = take(world, DeviceState(), who).state
    change(world, lambda i: list_received(i, GPU, [device("y", 0)]))

    with pytest.raises(DeviceFault) as container_fault:
        world.topology_hints(state, who, who.containers[0], Sources())
    with pytest.raises(DeviceFault) as pod_fault:
        world.pod_topology_hints(state, who, Sources())

    assert (
        str(container_fault.value)
        == str(pod_fault.value)
        == (
            f'pod "pod" container "app" holds device "c" of resource "{GPU}", '
            "which its device plugin no longer lists"
        )
    )


def test_t10_only_nodes_with_devices_appear() -> None:
    world = engine(device("a", 0), device("b", 1), nodes=(0, 1, 2, 3))

    found = hints_for(world, DeviceState(), pod(container(gpu=1)))

    assert found == (hint(0), hint(1), hint(0, 1, preferred=False))


def test_t11_a_device_on_an_unknown_node_cannot_be_placed() -> None:
    assert hints_for(engine(device("a", 7)), DeviceState(), pod(container(gpu=1))) == ()


def test_t12_a_pod_admitted_as_a_whole_gets_devices_at_its_start() -> None:
    who = pod(container(gpu=1))
    world = engine(device("a", 0))
    state = run(world.allocate_pod(DeviceState(), who, hint(0), Sources())).state
    assert held(state, who, "app") == set()

    state, _ = run(world.prepare_container(state, who, who.containers[0]))
    assert held(state, who, "app") == {"a"}

    strict = engine(device("a", 0), options=PluginOptions(pre_start_required=True))
    with pytest.raises(ContainerNotPrepared) as refused:
        run(strict.pre_start(DeviceState(), who, who.containers[0]))
    assert str(refused.value) == (
        f"no devices found allocated in local cache for pod pod, container app, resource {GPU}"
    )


def test_t13_the_message_counts_after_reuse() -> None:
    world = engine(device("a", 0), device("b", 0))
    first = container("first", init=True, gpu=1)
    who = pod(first, container(gpu=3))
    state = take(world, DeviceState(), who, of=first).state

    done = take(world, state, who)

    assert done.failure is not None
    assert done.failure.message == (
        f"requested number of devices unavailable for {GPU}. Requested: 2, Available: 1"
    )


def test_t14_status_still_says_healthy_after_a_disconnect() -> None:
    known = plugin_disconnected(inventory({GPU: (device("a", 0),)}), GPU, now=1.0)

    assert last_reported(known, GPU, ids("a")[0]) == HEALTHY


def test_t15_a_vanishing_device_is_no_health_change_but_its_return_is() -> None:
    known = inventory({GPU: (device("a", 0), device("b", 0))})
    shorter = [device("a", 0)]
    longer = [device("a", 0), device("b", 0)]

    assert health_changes(known, GPU, shorter) == set()
    assert health_changes(list_received(known, GPU, shorter), GPU, longer) == {"b"}


@pytest.mark.parametrize(
    ("strategies", "restored"),
    [
        pytest.param(KUBELET, {"pod"}, id="kubelet"),
        pytest.param(SAFE, set(), id="safe"),
    ],
)
def test_t17_the_stored_form_after_a_pod_is_gone(
    strategies: DeviceStrategies, restored: set[str]
) -> None:
    world = engine(device("a", 0), strategies=strategies)
    who = pod(container(gpu=1))
    state = take(world, DeviceState(), who).state
    state = world.remove_stale(state, active())
    assert world.pods(state) == set()

    started = engine(device("a", 0), strategies=strategies).start(world.encode(state)).state

    assert world.pods(started) == restored
    assert world.pods(world.remove_stale(started, active())) == set()
    listed = world.noted(state)
    assert world.pods(world.start(world.encode(listed)).state) == set()


def test_t18_a_deleted_resource_with_living_pods_is_still_ours() -> None:
    world = engine(device("a", 0))
    state = take(world, DeviceState(), pod(container(gpu=1), uid="old")).state

    def give_up(known: Inventory) -> Inventory:
        lost = plugin_disconnected(known, GPU, now=0.0)
        return capacity(lost, STOP_GRACE_SECONDS + 1).inventory

    change(world, give_up)

    done = take(world, state, pod(container(gpu=1)))

    assert done.failure is not None
    assert done.failure.message == f"cannot allocate unregistered device {GPU}"


def test_t19_a_claimed_resource_still_gives_hints() -> None:
    who = pod(container(gpu=1), claimed_resources=frozenset({("app", GPU)}))
    world = engine(device("a", 0))

    assert hints_for(world, DeviceState(), who) == (hint(0),)
    assert held(take(world, DeviceState(), who).state, who, "app") == set()


def test_t20_hints_hold_all_reusable_devices() -> None:
    world = engine(device("a", 0), device("b", 0), device("c", 1))
    first = container("first", init=True, gpu=1)
    who = pod(first, container(gpu=1))
    state = take(world, DeviceState(), who, of=first, under=hint(1)).state

    assert hints_for(world, state, who) == (hint(1), hint(0, 1, preferred=False))


def test_t21_a_sidecar_consumes_what_it_reuses() -> None:
    listed: tuple[Device, ...] = (device("a", 1), device("b", 0), device("c", 0))
    world = build_engine(
        inventory({GPU: listed}), machine(0, 1), FeatureGates(), Plugins(), KUBELET
    )
    first, side = container("i", init=True, gpu=2), container("s", sidecar=True, gpu=1)
    who = pod(first, side, container(gpu=2))
    state = DeviceState()
    for each in who.all_containers():
        state = take(world, state, who, of=each, under=hint(0)).state

    assert held(state, who, "i") == {"b", "c"}
    assert held(state, who, "s") == {"b"}
    assert held(state, who, "app") == {"a", "c"}

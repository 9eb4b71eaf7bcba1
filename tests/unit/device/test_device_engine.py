"""The engine as a whole: allocation in both ways, seal, start, release."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.device.device_world import (
    GPU,
    KUBELET,
    NIC,
    SAFE,
    Plugins,
    active,
    bare,
    change,
    container,
    device,
    engine,
    held,
    hint,
    ids,
    pod,
    run,
)

from numalign.device.errors import DeviceFault
from numalign.device.inventory import (
    list_received,
    plugin_disconnected,
)
from numalign.device.ports import EmptyAllocation, PluginError
from numalign.device.state import DeviceRecord, DeviceState
from numalign.model.feature_gates import FeatureGates
from numalign.model.hint import NO_HINT
from numalign.model.ids import PodUid
from numalign.model.settings import PreferredAllocation
from numalign.provider.engine import Engine, Sources
from numalign.provider.values import (
    ContainerEdits,
    PodHolding,
)

GPUS = (device("a", 0), device("b", 0), device("c", 1), device("d", 1))
NICS = (device("n", 0), device("o", 1))
BUSY = EmptyAllocation("{}")


def allocated(state: DeviceState) -> dict[str, str]:
    return {r: "".join(sorted(taken)) for r, taken in state.allocated.items()}


def test_it_is_an_engine() -> None:
    world: Engine[DeviceState] = engine(*GPUS, nics=NICS)

    assert world.name == "device"
    assert world.resources() == (GPU, NIC)


def test_in_place_the_plugin_is_told_resource_by_resource() -> None:
    plugins = Plugins()
    world = engine(*GPUS, nics=NICS, plugins=plugins)
    app = container(gpu=1, nic=1)

    done = run(world.allocate(DeviceState(), pod(app), app, hint(1), Sources()))

    assert plugins.told == [
        ("prefer", GPU, ids("c", "d"), (), 1),
        ("allocate", GPU, ids("c")),
        ("allocate", NIC, ids("o")),
    ]
    assert [(c.resource, c.call) for c in done.plugin_calls] == [
        (GPU, "GetPreferredAllocation"),
        (GPU, "Allocate"),
        (NIC, "Allocate"),
    ]
    assert done.failure is None
    assert held(done.state) == {"app": {GPU: "c", NIC: "o"}}
    record = done.state.record(PodUid("pod"), "app", GPU)
    assert record == DeviceRecord(ids_by_node={1: ids("c")}, edits=ContainerEdits())


def test_a_dry_run_tells_no_plugin_in_place_either() -> None:
    plugins = Plugins()
    world = engine(*GPUS, nics=NICS, plugins=plugins)
    app = container(gpu=1, nic=1)

    done = run(world.allocate(DeviceState(), pod(app), app, hint(1), Sources(), dry_run=True))

    assert plugins.told == [("prefer", GPU, ids("c", "d"), (), 1)]
    assert held(done.state) == {"app": {GPU: "c", NIC: "o"}}


@pytest.mark.parametrize(
    ("error", "message", "taken"),
    [
        pytest.param(PluginError("no!"), "no!", {GPU: "a"}, id="call-fails-and-rebuilds"),
        pytest.param(
            BUSY,
            "no containers return in allocation response {}",
            {GPU: "a", NIC: "n"},
            id="empty-answer-leaves-a-phantom",
        ),
    ],
)
def test_a_failing_allocate_in_place(
    error: PluginError, message: str, taken: dict[str, str]
) -> None:
    world = engine(*GPUS, nics=NICS, plugins=Plugins(allocate_error={NIC: error}))
    app = container(gpu=1, nic=1)

    done = run(world.allocate(DeviceState(), pod(app), app, hint(0), Sources()))

    assert done.failure is not None
    assert done.failure.message == message
    assert done.failure.reason is None
    assert held(done.state) == {"app": {GPU: "a"}}
    assert allocated(done.state) == taken


def test_a_failing_preference_leaves_what_was_taken() -> None:
    world = engine(*GPUS, plugins=Plugins(preferred=PreferredAllocation.ERROR))
    app = container(gpu=3)

    done = run(world.allocate(DeviceState(), pod(app), app, hint(1), Sources()))

    assert done.failure is not None
    assert done.failure.message == (
        "device plugin GetPreferredAllocation rpc failed with err: preferred allocation failed"
    )
    assert allocated(done.state) == {GPU: "cd"}
    assert done.plugin_calls[0].error == "preferred allocation failed"


def test_told_last_the_plugins_hear_nothing_before_the_seal() -> None:
    edits = ContainerEdits(envs={"GPU": "1"})
    plugins = Plugins(edits={GPU: edits})
    world = engine(*GPUS, nics=NICS, plugins=plugins, strategies=SAFE)
    first, app = container("first", init=True, gpu=1, nic=1), container(gpu=1)
    asked = pod(app, first)
    state = DeviceState()
    for each in (first, app):
        state = run(world.allocate(state, asked, each, hint(0), Sources())).state

    assert [t[0] for t in plugins.told] == ["prefer"]
    assert held(state) == {"first": {GPU: "a", NIC: "n"}, "app": {GPU: "a"}}
    # What is not answered yet survives the way through the store.
    state = world.start(world.encode(state)).state

    done = run(world.seal(state, asked))

    assert plugins.told[1:] == [
        ("allocate", GPU, ids("a")),
        ("allocate", NIC, ids("n")),
        ("allocate", GPU, ids("a")),
    ]
    assert [(c.container, c.resource) for c in done.plugin_calls] == [
        ("first", GPU),
        ("first", NIC),
        ("app", GPU),
    ]
    assert world.holdings(done.state, asked.uid)[0].devices[0].edits == edits
    assert run(world.seal(done.state, asked)).plugin_calls == ()


def test_a_failing_seal_says_what_the_plugin_said() -> None:
    world = engine(
        *GPUS, plugins=Plugins(allocate_error={GPU: PluginError("on fire")}), strategies=SAFE
    )
    app = container(gpu=1)
    state = run(world.allocate(DeviceState(), pod(app), app, hint(0), Sources())).state

    done = run(world.seal(state, pod(app)))

    assert done.failure is not None
    assert done.failure.message == "on fire"
    assert done.plugin_calls[0].error == "on fire"


def test_a_seal_after_the_plugin_left_fails_as_a_stopped_endpoint() -> None:
    world = engine(*GPUS, strategies=SAFE)
    app = container(gpu=1)
    state = run(world.allocate(DeviceState(), pod(app), app, hint(0), Sources())).state
    change(world, lambda i: plugin_disconnected(i, GPU, now=1.0))

    done = run(world.seal(state, pod(app)))

    assert done.failure is not None
    assert done.failure.message == f"endpoint {GPU} has been stopped"


def test_in_place_a_seal_has_nothing_to_do() -> None:
    world = engine(*GPUS)
    app = container(gpu=1)
    state = run(world.allocate(DeviceState(), pod(app), app, hint(0), Sources())).state

    assert run(world.seal(state, pod(app))).state is state


def test_devices_on_several_nodes_or_none_are_recorded_as_such() -> None:
    world = engine(device("m", 1, 0), bare("x"))
    app = container(gpu=2)

    done = run(world.allocate(DeviceState(), pod(app), app, hint(0), Sources()))

    record = done.state.record(PodUid("pod"), "app", GPU)
    assert record is not None
    assert record.ids_by_node == {-1: ids("x"), 0: ids("m"), 1: ids("m")}
    assert record.ids() == {"m", "x"}


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        pytest.param(FeatureGates(), {}, id="claims-count"),
        pytest.param(FeatureGates(dra_extended_resource=False), {"app": {GPU: "a"}}, id="gate-off"),
    ],
)
def test_what_a_claim_backs_is_not_taken(
    gates: FeatureGates, expected: dict[str, dict[str, str]]
) -> None:
    world = engine(*GPUS, gates=gates)
    app = container(gpu=1)
    asked = pod(app, claimed_resources=frozenset({("app", GPU)}))

    done = run(world.allocate(DeviceState(), asked, app, NO_HINT, Sources()))

    assert held(done.state) == expected


def test_a_resource_nobody_serves_is_not_for_this_provider() -> None:
    world = engine(*GPUS)
    app = container(nic=1)

    assert world.topology_hints(DeviceState(), pod(app), app, Sources()).hints == {}
    done = run(world.allocate(DeviceState(), pod(app), app, NO_HINT, Sources()))
    assert (done.failure, done.state.records) == (None, {})


def test_a_pod_as_a_whole_takes_nothing() -> None:
    world = engine(*GPUS)
    state = DeviceState()

    assert run(world.allocate_pod(state, pod(container(gpu=1)), hint(0), Sources())).state is state
    assert world.pod_holding(state, PodUid("pod")) == PodHolding()
    assert world.shared_cpus(state) is None


def test_pod_hints_take_the_greatest_moment() -> None:
    world = engine(*GPUS)
    asked = pod(
        container("big", init=True, gpu=3), container("side", sidecar=True, gpu=1), container(gpu=1)
    )

    hinted = world.pod_topology_hints(DeviceState(), asked, Sources())

    assert hinted.hints == {GPU: (hint(0, 1),)}


def test_pod_hints_of_a_pod_that_has_devices_are_where_they_are() -> None:
    world = engine(*GPUS)
    asked = pod(container("one", gpu=1), container("two", gpu=1))
    state = DeviceState()
    for each in asked.containers:
        state = run(world.allocate(state, asked, each, hint(1), Sources())).state

    hinted = world.pod_topology_hints(state, asked, Sources())

    assert hinted.hints == {GPU: (hint(1), hint(0, 1, preferred=False))}


def test_hints_drop_pods_that_are_gone_only_where_sources_say_so() -> None:
    world = engine(*GPUS)
    old, new = pod(container(gpu=4), uid="old"), pod(container(gpu=1), uid="new")
    state = run(world.allocate(DeviceState(), old, old.containers[0], hint(0, 1), Sources())).state
    app = new.containers[0]

    silent = world.topology_hints(state, new, app, Sources())
    unready = world.topology_hints(state, new, app, Sources(active={}, ready=False))
    told = world.topology_hints(state, new, app, active(new))

    assert silent.hints == unready.hints == {GPU: ()}
    assert silent.state is unready.state is state
    assert told.hints == {GPU: (hint(0), hint(1), hint(0, 1, preferred=False))}
    assert told.state.records == {}
    assert world.remove_stale(state, active(new)).records == {}
    assert world.pods(state) == {"old"}


def test_a_running_container_is_left_alone_while_pods_are_read_in() -> None:
    world = engine(*GPUS)
    app = container(gpu=1)
    asked = pod(app)
    starting = Sources(active={}, ready=False, running=frozenset({(asked.uid, "app")}))

    done = run(world.allocate(DeviceState(), asked, app, NO_HINT, starting))

    assert (done.failure, done.plugin_calls, done.state.records) == (None, (), {})


def test_release_gives_back_everything_at_once() -> None:
    world = engine(*GPUS)
    first, app = container("first", init=True, gpu=2), container(gpu=1)
    asked, other = pod(first, app), pod(container(gpu=1), uid="other")
    state = DeviceState()
    for who, each in ((other, other.containers[0]), (asked, first), (asked, app)):
        state = run(world.allocate(state, who, each, hint(0, 1), Sources())).state
    assert state.reusable_by(asked.uid, GPU)

    after = world.release(state, asked.uid)

    assert allocated(after) == {GPU: "a"}
    assert world.pods(after) == {"other"}
    assert not after.reusable_by(asked.uid, GPU)
    assert world.release(after, asked.uid) == after


def test_containers_are_not_freed_one_by_one() -> None:
    world = engine(*GPUS)
    app = container(gpu=1)
    state = run(world.allocate(DeviceState(), pod(app), app, hint(0), Sources())).state

    assert world.add_container(state, pod(app), app) is state
    assert world.remove_container(state, PodUid("pod"), "app") is state


@pytest.mark.parametrize("strategies", [KUBELET, SAFE], ids=["kubelet", "safe"])
def test_a_restart_restores_records_and_counts_them(strategies: Any) -> None:
    world = engine(*GPUS, strategies=strategies)
    app = container(gpu=1)
    state = run(world.allocate(DeviceState(), pod(app), app, hint(0), Sources())).state
    stored = world.encode(state)

    again = engine(nics=NICS, strategies=strategies)
    started = again.start(stored)

    assert started.reports == ()
    assert started.state.records == state.records
    assert allocated(started.state) == {GPU: "a"}
    assert again.resources() == (GPU, NIC)
    hinted = again.topology_hints(started.state, pod(app), app, Sources())
    assert hinted.hints == {GPU: None}
    late = pod(app, uid="late")
    done = run(again.allocate(started.state, late, app, NO_HINT, Sources()))
    assert done.failure is not None
    assert done.failure.message == (
        f"no healthy devices present; cannot allocate unhealthy devices {GPU}"
    )


@pytest.mark.parametrize(
    ("stored", "reports"),
    [
        pytest.param(None, 0, id="nothing-stored"),
        pytest.param(b"", 1, id="empty"),
        pytest.param(b"\xff\xfe", 1, id="not-text"),
        pytest.param(b'{"records": 1}', 1, id="not-the-schema"),
        pytest.param(b'{"records": {"p": {"c": {"r": {"ids_by_node": 5}}}}}', 1, id="bad-record"),
    ],
)
def test_start_never_refuses(stored: bytes | None, reports: int) -> None:
    started = engine(*GPUS).start(stored)

    assert started.state.records == {}
    assert len(started.reports) == reports


def test_a_bad_record_spoils_no_other() -> None:
    good = {"ids_by_node": {"-1": ["x"]}, "edits": None}
    stored = msgspec.json.encode({"records": {"p": {"c": {"r": good, "s": {}}}}})

    started = engine(*GPUS).start(stored)

    assert started.state.records == {"p": {"c": {"r": DeviceRecord(ids_by_node={-1: ids("x")})}}}
    assert started.reports[0].startswith('record of pod "p" container "c" resource "s" dropped: ')


def test_a_reused_device_that_vanished_is_a_fault() -> None:
    world = engine(*GPUS)
    first, app = container("first", init=True, gpu=1), container(gpu=1)
    asked = pod(first, app)
    state = run(world.allocate(DeviceState(), asked, first, hint(0), Sources())).state
    change(world, lambda i: list_received(i, GPU, GPUS[1:]))

    with pytest.raises(DeviceFault) as fault:
        run(world.allocate(state, asked, app, hint(0), Sources()))
    assert (fault.value.container, fault.value.resource, fault.value.device) == ("app", GPU, "a")

from __future__ import annotations

import pytest
from tests.unit.device.device_world import GPU, NIC, active, container, hint, pod, run
from tests.unit.device.kubelet.kubelet_world import FOUR, bare, following, silent, told, told_pod

from numalign.device.kubelet.observation import refreshed
from numalign.device.kubelet.values import ToldDevice
from numalign.device.messages import DeviceBooks
from numalign.device.state import DeviceState
from numalign.errors import Deferred
from numalign.model.hint import NO_HINT, TopologyHint
from numalign.model.numa_mask import mask_of
from numalign.model.pod import Pod
from numalign.provider.engine import Preparation, Recorded, Sources

ANY = Sources()


def named(*containers: object, name: str = "p", **fields: object) -> Pod:
    return pod(*containers, uid=f"uid-{name}", name=name, namespace="default", **fields)  # type: ignore[arg-type]


def masks(hints: object) -> set[tuple[int, bool]]:
    assert isinstance(hints, tuple)
    found: set[tuple[int, bool]] = set()
    for each in hints:
        assert isinstance(each, TopologyHint)
        assert each.mask is not None
        found.add((each.mask, each.preferred))
    return found


def test_hints_are_those_of_the_devices_that_the_container_has() -> None:
    engine = following(told_pod("p", {"app": (told("c", 1),)}))
    app = container(gpu=1)

    hinted = engine.topology_hints(DeviceState(), named(app), app, ANY)

    assert hinted.hints is not None
    assert masks(hinted.hints[GPU]) == {(mask_of([1]), True), (mask_of([0, 1]), False)}
    assert hinted.state == DeviceState()


def test_devices_on_both_nodes_need_both() -> None:
    engine = following(told_pod("p", {"app": (told("a", 0), told("c", 1))}))
    app = container(gpu=2)

    hinted = engine.topology_hints(DeviceState(), named(app), app, ANY)

    assert hinted.hints is not None
    assert masks(hinted.hints[GPU]) == {(mask_of([0, 1]), False)}


def test_another_number_than_asked_for_is_impossible() -> None:
    engine = following(told_pod("p", {"app": (told("a", 0),)}))
    app = container(gpu=2)

    assert engine.topology_hints(DeviceState(), named(app), app, ANY).hints == {GPU: ()}
    assert engine.pod_topology_hints(DeviceState(), named(app), ANY).hints == {GPU: ()}


def test_devices_without_topology_have_no_preference() -> None:
    engine = following(told_pod("p", {"app": (bare("n"),)}), devices=(bare("n"),))
    app = container(gpu=1)

    assert engine.topology_hints(DeviceState(), named(app), app, ANY).hints == {GPU: None}


def test_hints_for_the_pod_are_those_of_all_its_devices() -> None:
    given = {"side": (told("a", 0),), "app": (told("b", 0),), "other": ()}
    engine = following(told_pod("p", given))
    which = named(
        container("setup", init=True, gpu=2),
        container("side", sidecar=True, gpu=1),
        container("app", gpu=1),
        container("other"),
    )

    hinted = engine.pod_topology_hints(DeviceState(), which, ANY)

    assert hinted.hints is not None
    assert masks(hinted.hints[GPU]) == {(mask_of([0]), True), (mask_of([0, 1]), False)}


def test_a_container_that_has_nothing_yet_is_waited_for() -> None:
    engine = following(told_pod("p", {"app": ()}))
    app = container(gpu=1)

    for call in (
        lambda: engine.topology_hints(DeviceState(), named(app), app, ANY),
        lambda: engine.pod_topology_hints(DeviceState(), named(app), ANY),
        lambda: run(engine.allocate(DeviceState(), named(app), app, NO_HINT, ANY)),
    ):
        with pytest.raises(Deferred) as raised:
            call()
        assert raised.value.reason == "KubeletDevicesNotKnown"
        assert str(raised.value) == f'the kubelet has given container "app" no {GPU} yet'
        assert raised.value.retry_after == 3.0


def test_before_the_kubelet_has_told_every_extended_resource_is_waited_for() -> None:
    engine = silent()
    app = container(nic=1)
    plain = container("plain")

    with pytest.raises(Deferred, match=f"has not told of its devices yet.*asks for {NIC}"):
        engine.topology_hints(DeviceState(), named(app), app, ANY)
    assert engine.topology_hints(DeviceState(), named(plain), plain, ANY).hints == {}


@pytest.mark.parametrize(
    ("which", "asks", "awaited"),
    [
        pytest.param(named(container(gpu=1)), True, True, id="devices"),
        pytest.param(named(container(gpu=0)), False, False, id="none of them"),
        pytest.param(named(container(nic=1)), True, False, id="devices of nobody, or new ones"),
        pytest.param(named(container("i", init=True, gpu=1)), False, False, id="for an init one"),
        pytest.param(
            named(container(gpu=1), claimed_resources=frozenset({("app", GPU)})),
            False,
            False,
            id="backed by a claim",
        ),
    ],
)
def test_who_asks_for_the_kubelets_devices(which: Pod, asks: bool, awaited: bool) -> None:
    engine = following()

    assert engine.asks(which) == asks
    assert engine.is_awaited(which) == awaited


def test_init_containers_have_no_preference_and_nothing_recorded() -> None:
    engine = following()
    init = container("i", init=True, gpu=1)
    which = named(init)

    assert engine.topology_hints(DeviceState(), which, init, ANY).hints == {}
    outcome = run(engine.allocate(DeviceState(), which, init, NO_HINT, ANY))
    assert outcome.failure is None
    assert outcome.state.records == {}


def test_what_was_given_is_recorded_and_nothing_injected() -> None:
    engine = following(told_pod("p", {"app": (told("c", 1),)}))
    app = container(gpu=1)
    which = named(app)

    outcome = run(engine.allocate(DeviceState(), which, app, hint(0), active(which)))
    sealed = run(engine.seal(outcome.state, which))

    assert (outcome.failure, outcome.plugin_calls, outcome.unsealed) == (None, (), False)
    (holding,) = engine.holdings(sealed.state, which.uid)
    assert holding.devices[0].ids_by_node == {1: ("c",)}
    assert run(engine.prepare_container(sealed.state, which, app)) == (sealed.state, Preparation())


def test_the_books_tell_what_is_in_use_by_the_kubelets_word() -> None:
    other = told_pod("other", {"x": (told("b", 0),)})
    engine = following(told_pod("p", {"app": (told("c", 1),)}), other)
    app = container(gpu=1)
    which = named(app)
    state = run(engine.allocate(engine.start(None).state, which, app, NO_HINT, ANY)).state

    def told_in_use(state: DeviceState) -> list[str]:
        (resource,) = DeviceBooks(engine).state_message(state).device.resources
        assert resource.connected
        return list(resource.allocated)

    assert told_in_use(state) == ["b", "c"]
    assert told_in_use(engine.release(state, which.uid)) == ["b", "c"]
    engine.observe(type(engine.observation)(allocatable=FOUR, complete=True))
    assert told_in_use(engine.noted(state)) == []


@pytest.mark.parametrize(
    ("allocatable", "holds", "health"),
    [
        pytest.param(FOUR, True, [], id="can-be-given-out"),
        pytest.param(FOUR[:2], True, ["Unhealthy"], id="held-and-cannot-be-given-out"),
        pytest.param(FOUR[:2], False, ["Unknown"], id="not-told-of-any-more"),
    ],
)
def test_health_is_what_the_kubelet_gives_out(
    allocatable: tuple[ToldDevice, ...], holds: bool, health: list[str]
) -> None:
    holder = told_pod("p", {"app": (told("c", 1),)})
    engine = following(holder)
    app = container(gpu=1)
    which = named(app)
    state = run(engine.allocate(engine.start(None).state, which, app, NO_HINT, ANY)).state
    engine.observe(refreshed(engine.observation, allocatable, (holder,) if holds else ()))

    assert [d.health for d in engine.unhealthy_devices(engine.noted(state))] == health


def test_records_and_names_outlive_a_restart() -> None:
    engine = following(told_pod("p", {"app": (told("c", 1),)}))
    app = container(gpu=1)
    which = named(app)
    state = run(engine.allocate(engine.start(None).state, which, app, NO_HINT, ANY)).state

    after = silent()
    started = after.start(engine.encode(state))

    assert after.resources() == (GPU,)
    assert after.holdings(started.state, which.uid) == engine.holdings(state, which.uid)


def test_a_pod_gets_back_what_it_has_although_it_is_in_use() -> None:
    engine = following(told_pod("p", {"app": (told("c", 1),)}))
    app = container(gpu=1)
    which = named(app)
    state = run(engine.allocate(engine.start(None).state, which, app, NO_HINT, ANY)).state
    recorded = Recorded(pod_uid=which.uid, holdings=engine.holdings(state, which.uid))

    restored = engine.restore(engine.start(None).state, recorded)

    assert restored.lost == ()
    assert engine.holdings(restored.state, which.uid) == recorded.holdings

"""What holds after any sequence of admissions, releases and device lists, in both ways."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.device.device_world import (
    GPU,
    KUBELET,
    SAFE,
    Plugins,
    active,
    container,
    device,
    engine,
    pod,
    run,
)

from numalign.device.engine import DeviceEngine
from numalign.device.freeing import allocated_by
from numalign.device.inventory import list_received
from numalign.device.state import DeviceState
from numalign.device.strategies import DeviceStrategies
from numalign.families.expand import expanded_list
from numalign.model.hint import NO_HINT
from numalign.model.pod import Container, Pod
from numalign.model.settings import PreferredAllocation
from numalign.provider.engine import Sources

NAMES = "abcdefgh"

requests = st.lists(st.integers(0, 4), min_size=1, max_size=4)
kinds = st.sampled_from(["init", "sidecar", "app"])
admissions = st.tuples(
    st.just("admit"), st.lists(st.tuples(kinds, st.integers(0, 4)), min_size=1, max_size=4)
)
releases = st.tuples(st.just("release"), st.integers(0, 9))
sick = st.tuples(st.just("sick"), st.sets(st.sampled_from(NAMES)))
steps = st.lists(admissions | releases | sick, max_size=12)


def make_pod(number: int, wanted: list[tuple[str, int]]) -> Pod:
    return pod(
        *(
            container(f"c{i}", init=kind == "init", sidecar=kind == "sidecar", gpu=gpu)
            for i, (kind, gpu) in enumerate(wanted)
        ),
        uid=f"p{number}",
    )


async def admit(
    world: DeviceEngine, state: DeviceState, who: Pod, sources: Sources
) -> tuple[DeviceState, bool]:
    """Container by container, under the first hint if there is one; whether all went well."""
    for each in who.all_containers():
        hinted = world.topology_hints(state, who, each, sources)
        listed = expanded_list((hinted.hints or {}).get(GPU))
        affinity = listed[0] if listed else NO_HINT
        before = hinted.state
        done = await world.allocate(before, who, each, affinity, sources)
        check_fresh(world, before, done.state, who, each)
        state = done.state
        if done.failure is not None:
            return state, False
    sealed = await world.seal(state, who)
    assert sealed.failure is None
    return sealed.state, True


def check_fresh(
    world: DeviceEngine, before: DeviceState, after: DeviceState, who: Pod, each: Container
) -> None:
    """What one container newly took was healthy and free, or left by its own pod."""
    record = after.record(who.uid, each.name, GPU)
    if record is None:
        return
    fresh = record.ids() - before.reusable_by(who.uid, GPU)
    assert fresh <= (world.inventory.of(GPU).healthy or frozenset())
    assert fresh.isdisjoint(before.allocated.get(GPU, frozenset()))


def check_owners(state: DeviceState) -> None:
    """No id is at two pods, and every recorded id counts as in use."""
    owners: dict[str, str] = {}
    for uid, containers in state.records.items():
        for resources in containers.values():
            for id_ in resources[GPU].ids():
                assert owners.setdefault(id_, uid) == uid
    assert owners.keys() <= state.allocated.get(GPU, frozenset())


@pytest.mark.parametrize("strategies", [KUBELET, SAFE], ids=["kubelet", "safe"])
@settings(max_examples=60, deadline=None)
@given(todo=steps, preferred=st.sampled_from(sorted(PreferredAllocation)))
def test_invariants(
    strategies: DeviceStrategies,
    todo: list[tuple[str, object]],
    preferred: PreferredAllocation,
) -> None:
    healthy = tuple(device(name, i % 3) for i, name in enumerate(NAMES))
    world = engine(
        *healthy, nodes=(0, 1, 2), plugins=Plugins(preferred=preferred), strategies=strategies
    )
    state = DeviceState()
    admitted: dict[int, Pod] = {}
    for number, (what, argument) in enumerate(todo):
        if what == "admit":
            assert isinstance(argument, list)
            who = make_pod(number, argument)
            lazy = strategies.store_lazily
            sources = active(*admitted.values(), who) if lazy else Sources()
            tried, well = run(admit(world, state, who, sources))
            if well:
                admitted[number] = who
            if well or lazy:
                state = tried
        elif what == "release":
            gone = sorted(admitted)[: 1 if argument else 0]
            for each in gone:
                state = world.release(state, admitted.pop(each).uid)
                in_use = dict(state.allocated)
                if strategies.store_lazily:
                    # The kubelet keeps what a refused pod left: here an empty set (DEV-30).
                    in_use = {name: taken for name, taken in in_use.items() if taken}
                assert in_use == allocated_by(state.records)
        else:
            assert isinstance(argument, set)
            now = tuple(
                device(name, i % 3, health="Sick" if name in argument else "Healthy")
                for i, name in enumerate(NAMES)
            )
            world.update_inventory(list_received(world.inventory, GPU, now))
        check_owners(state)
    assert world.start(world.encode(world.noted(state))).state.records == state.records
    for who in admitted.values():
        state = world.release(state, who.uid)
    assert {p.uid for p in admitted.values()}.isdisjoint(world.pods(state))

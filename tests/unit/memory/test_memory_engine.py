"""The engine as a whole: the protocol, the policies, and invariants over random histories."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.memory import memory_builders as build
from tests.unit.memory.memory_builders import GI, Node, block, container, hint, node, pod

from numalign.families.expand import expanded_list
from numalign.memory.engine import SAFE, MemoryEngine, build_engine
from numalign.memory.state import MemoryState
from numalign.model.hint import NO_HINT, TopologyHint
from numalign.model.ids import PodUid
from numalign.model.numa_mask import NumaMask
from numalign.model.pod import Container, Pod
from numalign.provider.engine import Engine, Preparation, Sources
from numalign.provider.values import Holding

SOURCES = Sources()


def test_it_is_an_engine() -> None:
    engine: Engine[MemoryState] = node(2).engine

    assert engine.name == "memory"
    assert engine.resources() == ("memory", "hugepages-*")
    assert engine.shared_cpus(engine.start(None).state) is None


def test_allocatable_memory_never_changes() -> None:
    """MEM-57."""
    host = node(2)
    assert host.allocate(pod("p", container("c", "1Gi")), "c", hint(0)) is None

    assert host.engine.allocatable == (block(9 * GI, 0), block(9 * GI, 1))


def test_holdings_and_preparation() -> None:
    host = node(2, huge_2mi=4)
    whole = pod("p", container("b", "10Gi"), container("a", "1Gi", hugepages_2Mi="0"))
    assert host.allocate(whole, "b", hint(0, 1)) is None
    assert host.allocate(whole, "a", hint(1)) is None
    engine, state = host.engine, host.state

    assert engine.pods(state) == {"p"}
    assert engine.holdings(state, whole.uid) == (
        Holding(container="a", memory=(block(0, 1, resource="hugepages-2Mi"), block(GI, 1))),
        Holding(container="b", memory=(block(10 * GI, 0, 1),)),
    )
    assert engine.holdings(state, PodUid("other")) == ()
    for name, mems in (("a", (1,)), ("b", (0, 1))):
        prepared = asyncio.run(engine.prepare_container(state, whole, whole.container(name)))
        assert prepared == (state, Preparation(mems=mems))
    other = pod("x", container("c", "1Gi"))
    assert asyncio.run(engine.prepare_container(state, other, other.container("c"))) == (
        state,
        Preparation(),
    )
    assert asyncio.run(engine.seal(state, whole)).state is state


def test_pod_scope_pins_every_container_to_the_pods_mask() -> None:
    """MEM-T21."""
    host = node(2)
    whole = pod("p", container("a", "6Gi"), container("b", "6Gi"))
    assert build.listed(host.hints(whole)) == ["0,1*"]
    for name in ("a", "b"):
        assert host.allocate(whole, name, hint(0, 1)) is None

    assert host.reserved() == [9 * GI, 3 * GI]
    assert host.engine.holdings(host.state, whole.uid)[1].memory == (block(6 * GI, 0, 1),)


def test_records_of_pods_that_ended_go_at_the_next_call() -> None:
    """MEM-T13: nothing is freed before, nor by a call that knows no active pods."""
    host = node(1)
    gone, next_one = pod("gone", container("c", "9Gi")), pod("next", container("c", "9Gi"))
    assert host.allocate(gone, "c", hint(0)) is None
    engine, wanted = host.engine, next_one.container("c")
    active = Sources(active={next_one.uid: frozenset({"c"})})
    assert engine.topology_hints(host.state, next_one, wanted, SOURCES).hints == {}
    hinted = engine.topology_hints(host.state, next_one, wanted, active)

    assert hinted.state.containers == {}
    assert hinted.hints == {"memory": (hint(0),)}
    assert engine.pod_topology_hints(host.state, next_one, active).state == hinted.state
    allocated = asyncio.run(engine.allocate(host.state, next_one, wanted, hint(0), active))
    assert allocated.failure is None
    assert engine.pods(allocated.state) == {"next"}
    whole = asyncio.run(engine.allocate_pod(host.state, next_one, hint(0), active))
    assert engine.pods(whole.state) == {"next"}


def test_a_failed_allocation_changes_nothing() -> None:
    """MEM-16."""
    host = node(1)
    before = host.state
    assert host.allocate(pod("p", container("c", "10Gi")), "c", hint(0)) is not None

    assert host.state is before


def test_a_value_that_is_no_integer_fails_the_allocation() -> None:
    assert node(1).allocate(pod("p", container("c", "1.5Gi")), "c") == (
        "[memorymanager] failed to represent quantity as int64"
    )


def test_a_fault_fails_the_allocation_with_its_text() -> None:
    asking = pod("p", container("c", "1Gi", hugepages_2Mi="2Mi"))
    text = (
        '[memorymanager] container "c" of pod "p" cannot be placed: NUMA node 0 has no memory of '
        'type "hugepages-2Mi"'
    )

    assert node(1).allocate(asking, "c", hint(0)) == text
    assert node(1).allocate(asking, "c") == text


def test_a_faulty_pod_request_fails_as_a_whole() -> None:
    host = node(1, gates=build.MANAGED_GATES)
    level = {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "2Mi"}

    assert host.allocate_pod(pod("p", container("c"), level=level), hint(0)) == (
        '[memorymanager] pod "p" cannot be placed: NUMA node 0 has no memory of type '
        '"hugepages-2Mi"'
    )


def test_allocating_again_keeps_what_is_held() -> None:
    host = node(2)
    whole = pod("p", container("c", "1Gi"))
    assert host.allocate(whole, "c", hint(1)) is None
    before = host.state

    assert host.allocate(whole, "c", hint(0)) is None
    assert host.state == before


@pytest.mark.parametrize("name", ["c", None])
def test_the_none_policy_has_no_opinion(name: str | None) -> None:
    engine = build_engine(build.settings(1, policy="None"), build.machine(1), build.GATES, SAFE)
    host = Node(engine, engine.start(None).state)
    whole = pod("p", container("c", "1Gi"))

    assert host.hints(whole, name) is None
    assert host.allocate(whole, "c", hint(0)) is None
    assert host.allocate_pod(whole, hint(0)) is None
    assert host.state == MemoryState(machine={})
    assert engine.facts(host.state, whole, None) == ()


@st.composite
def pods(draw: st.DrawFn, uid: str) -> Pod:
    kinds = st.sampled_from(["init", "sidecar", "app"])
    listed: list[Container] = []
    for number in range(draw(st.integers(1, 4))):
        kind = draw(kinds)
        huge = {"hugepages_2Mi": f"{draw(st.integers(0, 3)) * 2}Mi"} if draw(st.booleans()) else {}
        listed.append(
            container(
                f"c{number}",
                f"{draw(st.integers(0, 12))}Gi",
                init=kind == "init",
                sidecar=kind == "sidecar",
                **huge,
            )
        )
    return pod(uid, *listed, qos="Guaranteed")


AFFINITIES = st.builds(TopologyHint, st.none() | st.integers(1, 7).map(NumaMask), st.booleans())


def _books_add_up(state: MemoryState) -> bool:
    return all(
        table.reserved + table.free == table.allocatable
        for memory in state.machine.values()
        for table in memory.tables.values()
    )


def _booked(state: MemoryState, resource: str) -> int:
    return sum(
        b.size
        for entries in state.containers.values()
        for blocks in entries.values()
        for b in blocks
        if b.resource == resource
    )


@settings(max_examples=60)
@given(data=st.data())
def test_random_histories_keep_the_books_straight(data: st.DataObject) -> None:
    host = node(3, huge_2mi=4)
    empty = host.state
    held: list[Pod] = []
    for number in range(data.draw(st.integers(1, 5))):
        whole = data.draw(pods(f"p{number}"))
        others = {u: e for u, e in host.state.containers.items() if u != whole.uid}
        for one in whole.all_containers():
            if host.allocate(whole, one.name, data.draw(AFFINITIES)) is not None:
                break
        held.append(whole)
        assert {u: e for u, e in host.state.containers.items() if u != whole.uid} == others
        if data.draw(st.booleans()):
            started = data.draw(st.sampled_from(whole.all_containers()))
            host.start_container(whole, started.name)
        assert _books_add_up(host.state)
        for resource in ("memory", "hugepages-2Mi"):
            assert sum(host.reserved(resource)) == _booked(host.state, resource)
    for whole in data.draw(st.permutations(held)):
        host.state = host.engine.release(host.state, whole.uid)
        assert _books_add_up(host.state)
    assert host.state == empty


@settings(max_examples=60)
@given(data=st.data())
def test_taking_what_the_hints_offer_never_fails_and_comes_back_whole(
    data: st.DataObject,
) -> None:
    host = node(3)
    empty = host.state
    held = []
    for number in range(data.draw(st.integers(1, 6))):
        whole = pod(f"p{number}", container("c", f"{data.draw(st.integers(1, 20))}Gi"))
        offered = host.hints(whole, "c")
        if not offered:
            assert host.allocate(whole, "c", NO_HINT) is not None
            continue
        chosen = data.draw(st.sampled_from(expanded_list(offered["memory"]) or ()))
        assert host.allocate(whole, "c", chosen) is None
        held.append(whole)
    for whole in data.draw(st.permutations(held)):
        host.state = host.engine.release(host.state, whole.uid)
    assert host.state == empty


def test_engines_are_built_once_and_keep_nothing() -> None:
    engine = node(2).engine
    assert isinstance(engine, MemoryEngine)

    assert engine.start(None).state == engine.start(None).state

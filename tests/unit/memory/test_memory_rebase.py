"""The start that never refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.memory.memory_builders import (
    GATES,
    GI,
    MANAGED_GATES,
    Node,
    block,
    books,
    container,
    hint,
    machine,
    node,
    pod,
    settings,
)

from numalign.errors import StateError
from numalign.memory.engine import KUBELET, SAFE, MemoryEngine, build_engine
from numalign.memory.state import MemoryState, encode
from numalign.model.ids import NumaId
from numalign.model.machine import HugePages, Machine, NumaNode
from numalign.model.quantity import Quantity
from numalign.model.settings import MemorySettings, ReservedMemory


def move_to(host: Node, engine: MemoryEngine) -> tuple[str, ...]:
    """Start another engine over what the host stored."""
    started = engine.start(host.engine.encode(host.state))
    host.engine, host.state = engine, started.state
    return started.reports


def uneven(*sizes: int, huge: tuple[int, ...] = ()) -> Machine:
    pools = [(HugePages(page_size_kib=2048, count=count),) for count in huge]
    return Machine(
        numa_nodes=tuple(
            NumaNode(id=i, memory_bytes=size, hugepages=pools[i] if huge else ())
            for i, size in enumerate(sizes)
        )
    )


def first_node_reserved(node_machine: Machine) -> MemoryEngine:
    gib = Quantity.parse("1Gi")
    given_settings = MemorySettings(
        policy="Static",
        reserved_memory=(ReservedMemory(numa_node=NumaId(0), limits={"memory": gib}),),
        node_allocatable_reservation={"memory": gib},
    )
    return build_engine(given_settings, node_machine, GATES, SAFE)


def test_uc_15_an_order_of_events_that_leaves_uneven_books() -> None:
    engine = first_node_reserved(uneven(220 * GI, 220 * GI))
    host = Node(engine, engine.start(None).state)
    first, second, third = (
        pod(name, container("c", size))
        for name, size in (("p1", "240Gi"), ("p2", "20Gi"), ("p3", "10Gi"))
    )
    assert host.allocate(first, "c", hint(0, 1)) is None
    assert host.allocate(second, "c", hint(0, 1)) is None
    host.state = host.engine.release(host.state, second.uid)
    assert host.allocate(third, "c", hint(0, 1)) is None
    before = host.state

    assert move_to(host, engine) == ()
    assert host.state.containers == before.containers
    assert sum(host.reserved()) == 250 * GI


def test_uc_16_memory_that_moved_between_nodes_at_a_reboot() -> None:
    before = (135277490176, 135233794048, 135233794048)
    after = (135233794048, 135233794048, 135277490176)
    host = Node(engine := first_node_reserved(uneven(*before)), engine.start(None).state)
    assert host.allocate(pod("p", container("c", "100Gi")), "c", hint(2)) is None

    assert move_to(host, first_node_reserved(uneven(*after))) == (
        (
            "NUMA node 0, memory: total 135277490176 is now 135233794048 bytes, reserved "
            "1073741824 is now 1073741824, allocatable 134203748352 is now 134160052224"
        ),
        (
            "NUMA node 2, memory: total 135233794048 is now 135277490176 bytes, reserved 0 is now "
            "0, allocatable 135233794048 is now 135277490176"
        ),
    )
    assert host.sizes("p") == {"c": [100 * GI]}
    assert host.reserved() == [0, 0, 100 * GI]


def test_only_the_assignment_that_no_longer_fits_is_left_out() -> None:
    host = node(2)
    old, new = (
        pod("old", container("c", "5Gi")),
        pod("new", container("c", "3Gi"), container("d", "1Gi")),
    )
    for whole, name, on in ((old, "c", 0), (new, "c", 0), (new, "d", 1)):
        assert host.allocate(whole, name, hint(on)) is None
    shrunk = build_engine(settings(2), uneven(7 * GI, 10 * GI), GATES, SAFE)

    assert move_to(host, shrunk) == (
        (
            f"NUMA node 0, memory: total {10 * GI} is now {7 * GI} bytes, reserved {GI} is now "
            f"{GI}, allocatable {9 * GI} is now {6 * GI}"
        ),
        (
            f"pod new, container c: left out, {3 * GI} bytes of memory on NUMA nodes 0 are needed "
            f"and {GI} are free"
        ),
    )
    assert host.state.containers == {
        "old": {"c": (block(5 * GI, 0),)},
        "new": {"d": (block(GI, 1),)},
    }
    assert host.reserved() == [5 * GI, GI]


def test_nodes_that_are_gone_and_new() -> None:
    host = node(2)
    for name, on in (("p", 0), ("q", 1)):
        assert host.allocate(pod(name, container("c", "1Gi")), "c", hint(on)) is None

    assert move_to(host, build_engine(settings(1), machine(1), GATES, SAFE)) == (
        "NUMA node 1 is gone",
        (
            "pod q, container c: left out, [memorymanager] (pod: q, container: c) the memory "
            "assignment uses the NUMA that does not exist"
        ),
    )
    assert move_to(host, build_engine(settings(2), machine(2), GATES, SAFE)) == (
        "NUMA node 1 is new",
    )
    assert host.reserved() == [GI, 0]


def test_huge_page_pools_that_were_resized_or_dropped() -> None:
    host = node(2, huge_2mi=512)
    paged = pod("p", container("c", "1Gi", hugepages_2Mi="4Mi"))
    assert host.allocate(paged, "c", hint(0)) is None
    resized = build_engine(settings(2), machine(2, huge_2mi=2), GATES, SAFE)
    assert len(move_to(host, resized)) == 4
    assert len(host.sizes("p")["c"]) == 2

    reports = move_to(host, build_engine(settings(2), machine(2), GATES, SAFE))
    assert "NUMA node 0, hugepages-2Mi: is gone" in reports
    assert reports[-1].startswith("pod p, container c: left out, ")
    assert host.state == MemoryState(machine=books(2))


def test_a_larger_reservation() -> None:
    host = node(1)
    assert host.allocate(pod("p", container("c", "7Gi")), "c", hint(0)) is None
    reserving = build_engine(settings(1, reserved="2Gi"), machine(1), GATES, SAFE)

    assert len(move_to(host, reserving)) == 1
    assert host.reserved() == [7 * GI]


def test_books_that_do_not_add_up_are_made_anew() -> None:
    """MEM-T5: a pod booked twice, which the kubelet refuses to start over."""
    host = node(1, gates=MANAGED_GATES)
    whole = pod("p", container("a"), level={"cpu": "1", "memory": "4Gi"})
    for _ in range(2):
        assert host.allocate_pod(whole, hint(0)) is None

    assert host.restart() == (
        "the stored books did not add up; made anew from the stored assignments",
    )
    assert host.reserved() == [4 * GI]
    assert host.state.pods == {"p": (block(4 * GI, 0),)}


def test_a_pod_booked_as_a_whole_goes_as_a_whole() -> None:
    host = node(1, gates=MANAGED_GATES)
    whole = pod("p", container("a", "1Gi"), container("b"), level={"cpu": "2", "memory": "8Gi"})
    assert host.allocate_pod(whole, hint(0)) is None
    shrunk = build_engine(settings(1), machine(1, gib=5), MANAGED_GATES, SAFE)
    reports = move_to(host, shrunk)

    assert reports[-1] == (
        f"pod p: left out, {8 * GI} bytes of memory on NUMA nodes 0 are needed and {4 * GI} are "
        "free"
    )
    assert (host.state.containers, host.state.pods, host.reserved()) == ({}, {}, [0])


def test_turning_pod_level_management_off_keeps_what_is_booked() -> None:
    host = node(1, gates=MANAGED_GATES)
    whole = pod("p", container("a", "1Gi"), container("b"), level={"cpu": "2", "memory": "8Gi"})
    assert host.allocate_pod(whole, hint(0)) is None
    move_to(host, node(1).engine)
    assert host.reserved() == [8 * GI]
    host.state = host.engine.release(host.state, whole.uid)

    assert host.state == MemoryState(machine=books(1))


def test_changing_the_policy() -> None:
    host = node(1)
    assert host.allocate(pod("p", container("c", "1Gi")), "c", hint(0)) is None
    none = build_engine(settings(1, policy="None"), machine(1), GATES, SAFE)

    assert move_to(host, none) == ("pod p, container c: given up, the policy is None now",)
    assert host.state == MemoryState(machine={})
    assert move_to(host, node(1).engine) == ()
    assert host.state == MemoryState(machine=books(1))


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(b"{", id="no-json"),
        pytest.param(b"{}", id="fields-missing"),
        pytest.param(
            encode(MemoryState(machine={}), policy="Static", pod_entries=False).replace(
                b'"layout":1', b'"layout":2'
            ),
            id="another-layout",
        ),
    ],
)
def test_what_cannot_be_read_is_no_state(stored: bytes) -> None:
    with pytest.raises(StateError):
        node(1).engine.start(stored)


@given(
    wanted=st.lists(
        st.tuples(st.integers(1, 12), st.sets(st.integers(0, 2), min_size=1)), max_size=6
    ),
    sizes=st.tuples(*[st.integers(2, 14)] * 3),
)
def test_any_machine_starts_with_books_that_add_up(
    wanted: list[tuple[int, set[int]]], sizes: tuple[int, int, int]
) -> None:
    host = node(3)
    for number, (gib, nodes) in enumerate(wanted):
        host.allocate(pod(f"p{number}", container("c", f"{gib}Gi")), "c", hint(*nodes))
    stored = host.state
    engine = build_engine(settings(3), uneven(*(size * GI for size in sizes)), GATES, SAFE)
    reports = move_to(host, engine)

    left_out = sum("left out" in line for line in reports)
    assert len(host.state.containers) == len(stored.containers) - left_out
    assert all(stored.containers[uid] == kept for uid, kept in host.state.containers.items())
    assert sum(host.reserved()) == sum(
        b.size for entries in host.state.containers.values() for bs in entries.values() for b in bs
    )
    again = build_engine(settings(3), uneven(*(size * GI for size in sizes)), GATES, KUBELET).start(
        engine.encode(host.state)
    )
    assert again.state == host.state

"""Moving bytes: filling order, groups, and giving back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.memory.memory_builders import GI, block, books, container, hint, node, pod

from numalign.memory.booking import book, fill, free_on, make_blocks, release
from numalign.memory.faults import MemoryFault
from numalign.memory.machine_state import MachineState
from numalign.model.numa_mask import mask_of
from numalign.provider.values import MemoryBlock

SIZES = st.lists(st.tuples(st.sets(st.integers(0, 2), min_size=1), st.integers(0, 12)), max_size=8)


def amounts(machine: MachineState) -> list[tuple[int, int]]:
    return [(m.tables["memory"].reserved, m.tables["memory"].free) for m in machine.values()]


def add_up(machine: MachineState) -> bool:
    return all(
        table.reserved + table.free == table.allocatable
        for memory in machine.values()
        for table in memory.tables.values()
    )


def test_lower_nodes_are_filled_completely_first() -> None:
    """MEM-T16."""
    host = node(2)
    assert host.allocate(pod("a", container("c", "12Gi")), "c", hint(0, 1)) is None
    assert host.reserved() == [9 * GI, 3 * GI]
    assert host.allocate(pod("b", container("c", "4Gi")), "c", hint(0, preferred=False)) is None

    assert host.reserved() == [9 * GI, 7 * GI]


def test_release_goes_by_node_and_not_by_origin() -> None:
    """MEM-T17: what stays is shown on node 1, and the group outlives its first user."""
    host = node(2)
    first = pod("a", container("c", "12Gi"))
    assert host.allocate(first, "c", hint(0, 1)) is None
    assert host.allocate(pod("b", container("c", "4Gi")), "c", hint(0, preferred=False)) is None
    host.state = host.engine.release(host.state, first.uid)

    assert host.reserved() == [0, 4 * GI]
    assert [(m.assignments, m.cells) for m in host.state.machine.values()] == [
        (1, (0, 1)),
        (1, (0, 1)),
    ]


def test_a_size_of_zero_still_counts_as_an_assignment() -> None:
    mask = mask_of((0, 1))
    booked = book(books(2), make_blocks(mask, {"memory": 0}), {}, mask)

    assert amounts(booked) == amounts(books(2))
    assert [(m.assignments, m.cells) for m in booked.values()] == [(1, (0, 1)), (1, (0, 1))]


def test_what_can_be_reused_is_not_booked_again() -> None:
    mask = mask_of((1,))
    booked = book(books(2), make_blocks(mask, {"memory": 5 * GI}), {(mask, "memory"): 3 * GI}, mask)

    assert amounts(booked) == [(0, 9 * GI), (2 * GI, 7 * GI)]


def test_bytes_that_find_no_room_are_not_reserved() -> None:
    machine = dict(books(1))
    fill(machine, block(20 * GI, 0), 20 * GI)

    assert amounts(machine) == [(9 * GI, 0)]


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        pytest.param(block(1, 7), "NUMA node 7 does not exist on this machine", id="node"),
        pytest.param(
            block(1, 0, resource="hugepages-2Mi"),
            'NUMA node 0 has no memory of type "hugepages-2Mi"',
            id="resource",
        ),
    ],
)
def test_unknown_places_are_faults(wrong: MemoryBlock, text: str) -> None:
    with pytest.raises(MemoryFault) as caught:
        fill(dict(books(1)), wrong, 1)

    assert str(caught.value) == text


@given(wanted=SIZES)
def test_books_add_up_and_releasing_everything_empties_them(
    wanted: list[tuple[set[int], int]],
) -> None:
    machine = books(3)
    booked: list[tuple[MemoryBlock, ...]] = []
    for nodes, gib in wanted:
        mask = mask_of(nodes)
        if free_on(machine, mask, "memory") < gib * GI:
            continue
        blocks = make_blocks(mask, {"memory": gib * GI})
        machine = book(machine, blocks, {}, mask)
        booked.append(blocks)
        assert add_up(machine)
    total = sum(b.size for blocks in booked for b in blocks)
    assert sum(reserved for reserved, _ in amounts(machine)) == total
    for blocks in booked:
        machine = release(machine, blocks)
        assert add_up(machine)
    assert [m.assignments for m in machine.values()] == [0, 0, 0]
    assert [m.cells for m in machine.values()] == [(0,), (1,), (2,)]


def test_release_of_everything_in_separate_groups_returns_every_byte() -> None:
    empty = books(3)
    left, right = mask_of((0, 1)), mask_of((2,))
    machine = book(empty, make_blocks(left, {"memory": 12 * GI}), {}, left)
    machine = book(machine, make_blocks(right, {"memory": 4 * GI}), {}, right)
    machine = release(machine, make_blocks(left, {"memory": 12 * GI}))
    machine = release(machine, make_blocks(right, {"memory": 4 * GI}))

    assert machine == empty

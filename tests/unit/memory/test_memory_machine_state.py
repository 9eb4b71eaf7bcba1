"""The books of an empty machine."""

from __future__ import annotations

import pytest
from tests.unit.memory.memory_builders import GI, MI, block

from numalign.memory.machine_state import (
    Table,
    allocatable_blocks,
    default_machine_state,
    huge_page_resource,
)
from numalign.model.ids import NumaId
from numalign.model.machine import HugePages, Machine, NumaNode

THREE_NODES = Machine(
    numa_nodes=(
        NumaNode(id=5, memory_bytes=4 * GI, hugepages=(HugePages(page_size_kib=2048, count=1024),)),
        NumaNode(id=2, memory_bytes=8 * GI, hugepages=(HugePages(page_size_kib=1048576, count=1),)),
        NumaNode(id=3, memory_bytes=0),
    )
)


@pytest.mark.parametrize(
    ("kib", "name"),
    [
        pytest.param(2048, "hugepages-2Mi", id="2Mi"),
        pytest.param(1048576, "hugepages-1Gi", id="1Gi"),
        pytest.param(64, "hugepages-64Ki", id="64Ki"),
        pytest.param(16777216, "hugepages-16Gi", id="16Gi"),
    ],
)
def test_names_of_huge_pages(kib: int, name: str) -> None:
    assert huge_page_resource(kib) == name


def test_nodes_by_id_alone_and_without_assignments() -> None:
    state = default_machine_state(THREE_NODES, {})

    assert list(state) == [2, 3, 5]
    assert [(memory.assignments, memory.cells) for memory in state.values()] == [
        (0, (2,)),
        (0, (3,)),
        (0, (5,)),
    ]


def test_huge_pages_and_reservation_are_not_allocatable() -> None:
    state = default_machine_state(THREE_NODES, {NumaId(2): {"memory": GI}})

    assert dict(state[NumaId(2)].tables) == {
        "hugepages-1Gi": Table(total=GI, system_reserved=0, allocatable=GI, reserved=0, free=GI),
        "memory": Table(
            total=8 * GI, system_reserved=GI, allocatable=6 * GI, reserved=0, free=6 * GI
        ),
    }


def test_too_large_a_reservation_wraps_around() -> None:
    state = default_machine_state(THREE_NODES, {NumaId(5): {"memory": 3 * GI}})

    assert state[NumaId(5)].tables["memory"].allocatable == 18446744072635809792


def test_allocatable_blocks_leave_out_empty_tables() -> None:
    blocks = allocatable_blocks(default_machine_state(THREE_NODES, {NumaId(2): {"memory": 7 * GI}}))

    assert blocks == (
        block(GI, 2, resource="hugepages-1Gi"),
        block(2 * GI, 5, resource="hugepages-2Mi"),
        block(4 * GI - 1024 * 2 * MI, 5),
    )

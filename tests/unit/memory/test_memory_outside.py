"""Huge pages in use outside the books: told by pool, and nothing else is mistaken for it."""

from __future__ import annotations

import pytest

from numalign.memory.machine_state import default_machine_state
from numalign.memory.outside import outside_the_books
from numalign.model.ids import NumaId
from numalign.model.machine import HugePages, Machine, NumaNode

GIB = 1 << 30
POOL = "hugepages-2Mi"
MACHINE = Machine(
    numa_nodes=(
        NumaNode(
            id=0, memory_bytes=32 * GIB, hugepages=(HugePages(page_size_kib=2048, count=8192),)
        ),
    )
)
LACKING = (
    "hugepages-2Mi on NUMA node 0: 3Gi free in the kernel, 16Gi in the books: at least 13Gi are "
    "used outside them, and a pod that is admitted may not get its pages"
)


@pytest.mark.parametrize(
    ("free", "reserved", "told"),
    [
        pytest.param({(0, POOL): 3 * GIB}, 0, (LACKING,), id="a pod without a booking has them"),
        pytest.param({(0, POOL): 16 * GIB}, 0, (), id="all free"),
        pytest.param({(0, POOL): 20 * GIB}, 0, (), id="booked and not touched yet"),
        pytest.param({(0, POOL): 12 * GIB}, 4 * GIB, (), id="the system has its own"),
        pytest.param({}, 0, (), id="the kernel does not tell"),
    ],
)
def test_what_is_told(
    free: dict[tuple[int, str], int], reserved: int, told: tuple[str, ...]
) -> None:
    state = default_machine_state(MACHINE, {NumaId(0): {POOL: reserved}})

    assert outside_the_books(state, free) == told

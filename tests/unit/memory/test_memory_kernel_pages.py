"""Books cut down to what the kernel has free, and the sentences about what it lacks."""

from __future__ import annotations

import pytest
from tests.unit.memory.memory_builders import GI, MI, block, books

from numalign.memory.kernel_pages import (
    as_the_kernel_has_it,
    has_huge_pages,
    lacks,
    less_own,
    shortage,
)
from numalign.provider.values import MemoryBlock

PAGES = "hugepages-2Mi"


@pytest.mark.parametrize(
    ("resources", "expected"),
    [((), False), (("memory",), False), (("memory", PAGES), True)],
    ids=["nothing", "memory", "pages"],
)
def test_what_has_huge_pages(resources: tuple[str, ...], expected: bool) -> None:
    assert has_huge_pages(resources) is expected


def test_no_more_is_free_than_the_kernel_has() -> None:
    machine = books(3, huge_2mi=512)

    seen = as_the_kernel_has_it(machine, {(0, PAGES): 300 * MI, (1, PAGES): 2 * GI})

    assert [node.tables[PAGES].free for node in seen.values()] == [300 * MI, GI, GI]
    assert [node.tables["memory"] for node in seen.values()] == [
        node.tables["memory"] for node in machine.values()
    ]
    assert seen[next(iter(seen))].tables[PAGES].allocatable == GI


@pytest.mark.parametrize(
    ("own", "left"),
    [
        pytest.param([], (8, 8), id="none"),
        pytest.param([block(3, 0, resource=PAGES)], (5, 8), id="one-node"),
        pytest.param([block(10, 0, 1, resource=PAGES)], (0, 6), id="a-group-in-order"),
        pytest.param([block(3, 0), block(0, 1, resource=PAGES)], (8, 8), id="other-resources"),
        pytest.param([block(30, 0, resource=PAGES)], (0, 8), id="never-below-nothing"),
        pytest.param([block(3, 5, resource=PAGES)], (8, 8), id="a-node-that-is-not-told-of"),
    ],
)
def test_what_is_left_beside_the_pods_own(own: list[MemoryBlock], left: tuple[int, int]) -> None:
    free = {(0, PAGES): 8, (1, PAGES): 8}

    assert less_own(free, own) == {(0, PAGES): left[0], (1, PAGES): left[1]}


@pytest.mark.parametrize(
    ("free", "blocks", "expected"),
    [
        pytest.param(
            {(0, PAGES): 100 * MI},
            [block(512 * MI, 0, resource=PAGES), block(GI, 0)],
            "hugepages-2Mi on NUMA node 0: 512Mi asked for, 100Mi free in the kernel, at least "
            "924Mi used outside the books",
            id="one-node",
        ),
        pytest.param(
            {(0, PAGES): 100 * MI, (1, PAGES): 200 * MI},
            [block(GI, 0, 1, resource=PAGES)],
            "hugepages-2Mi on NUMA nodes 0,1: 1Gi asked for, 300Mi free in the kernel, at least "
            "1748Mi used outside the books",
            id="a-group",
        ),
        pytest.param(
            {(0, PAGES): 512 * MI}, [block(512 * MI, 0, resource=PAGES)], "", id="just-enough"
        ),
        pytest.param({}, [block(512 * MI, 0, resource=PAGES)], "", id="not-told"),
        pytest.param(
            {(0, PAGES): 0}, [block(GI, 0, 1, resource=PAGES)], "", id="not-told-of-all-nodes"
        ),
    ],
)
def test_shortage(
    free: dict[tuple[int, str], int], blocks: list[MemoryBlock], expected: str
) -> None:
    assert shortage(books(2, huge_2mi=512), blocks, free) == expected


@pytest.mark.parametrize(
    ("free", "expected"),
    [
        pytest.param({(0, PAGES): GI, (1, PAGES): 2 * GI}, "", id="nothing-lacks"),
        pytest.param(
            {(0, PAGES): 0, (1, PAGES): 2 * MI},
            "the kernel has only 0 on NUMA node 0, 2Mi on NUMA node 1 free",
            id="both",
        ),
    ],
)
def test_note(free: dict[tuple[int, str], int], expected: str) -> None:
    assert lacks(books(2, huge_2mi=512), free, PAGES) == expected
    assert lacks(books(2, huge_2mi=512), free, "hugepages-1Gi") == ""

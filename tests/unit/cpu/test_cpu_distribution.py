"""The search for an even spread, and the effects that its results depend on."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cpu.cpu_machines import machine, single

from numalign.cpu.accumulator import AssignmentError
from numalign.cpu.balance import deviation
from numalign.cpu.distribution import Distribution
from numalign.cpu.order import averaged_layout
from numalign.cpu.remembered import Remembered
from numalign.cpu.take_distributed import take_distributed
from numalign.cpu.topology import discover


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([2, 8], 3.0, id="two"),
        pytest.param([5], 0.0, id="one"),
        pytest.param([1, 2, 4], 1.247, id="mean of three decimals"),
        pytest.param([0, 0, 0, 1], 0.433, id="down"),
    ],
)
def test_deviation(values: list[int], expected: float) -> None:
    assert deviation(values) == expected


@pytest.mark.parametrize(
    ("size", "last"),
    [(1, (0,)), (2, (0, 1)), (3, (0, 1, 2)), (4, (0, 1, 2, 7)), (5, (0, 1, 2, 3, 4)),
     (6, (0, 1, 2, 3, 4, 7)), (7, (0, 1, 2, 3, 4, 6, 7)), (8, (0, 1, 2, 3, 4, 5, 6, 7))],
)  # fmt: skip
def test_remembered_combination_is_overwritten(size: int, last: tuple[int, ...]) -> None:
    kept = Remembered(size)
    for number, combination in enumerate(combinations(range(8), size)):
        kept.generated(combination)
        if number == 0:
            kept.keep(combination)

    assert kept.value == last


def test_remembered_combination_stops_with_the_enumeration() -> None:
    kept = Remembered(4)
    kept.generated((0, 1, 2, 3))
    kept.keep((0, 1, 2, 3))
    kept.generated((0, 1, 2, 4))

    assert kept.value == (0, 1, 2, 4)
    kept.generated((0, 1, 3, 4))
    assert kept.value == (0, 1, 2, 4)


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=6),
    st.integers(1, 12),
    st.sampled_from([1, 2]),
    st.integers(1, 6),
)
def test_fullest_nodes_fit_exactly_where_a_combination_does(
    free: list[int], groups: int, group: int, size: int
) -> None:
    """Beyond the work limit nothing is refused that comparing would have found."""
    count = groups * group
    if size > len(free) or count > sum(free):
        return
    search = Distribution(free, count, group)
    share = count // size // group * group

    compared = search._compared(size, share, count - share * size)
    fullest = search._fullest(size, share, count - share * size)

    assert (fullest is None) == (compared is None)
    if fullest is not None:
        left = [f - share * (i in fullest.nodes) for i, f in enumerate(free)]
        assert min(left) >= 0
        assert sum(left[i] // group for i in fullest.takers) * group >= fullest.rest


@pytest.mark.timeout(120)
@pytest.mark.parametrize("count", [1, 13, 39, 100, 143, 144, 145, 287])
def test_large_machines_are_answered(count: int) -> None:
    where = machine({n: single(range(8 * n, 8 * n + 8), socket=n // 2) for n in range(36)})
    layout = averaged_layout(discover(where))
    offered = ((1 << 288) - 1) & ~1

    chosen = take_distributed(layout, offered, count, group=1)

    assert chosen.bit_count() == count
    assert chosen & ~offered == 0


def test_altered_combination_is_an_accounting_error() -> None:
    """The combination kept by reference may end on a node without its share (CPU-65a).

    The four nodes of the first socket are kept; the last of them is overwritten by the last
    node of the other socket, which has 2 free CPUs instead of 4.
    """
    where = machine({n: single(range(4 * n, 4 * n + 4), socket=int(n >= 4)) for n in range(14)})
    offered = 0xFFFF | sum(0b0011 << 4 * n for n in range(4, 14))

    with pytest.raises(AssignmentError) as failed:
        take_distributed(averaged_layout(discover(where)), offered, 16, group=1)

    assert str(failed.value) == "accounting error, not enough CPUs allocated, remaining: 4"

"""Intersections by table and by pairs are the same set."""

from __future__ import annotations

from functools import reduce
from itertools import product
from operator import and_

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.model.numa_mask import NumaMask
from numalign.topology.intersections import intersections
from numalign.topology.lane_table import BitRuns, LaneTable

WIDE = st.integers(0, 2**64 - 1).map(NumaMask)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sets(WIDE, max_size=4), max_size=4), WIDE)
def test_every_intersection_and_no_other(lists: list[set[NumaMask]], default: NumaMask) -> None:
    expected = {reduce(and_, masks, default) for masks in product(*lists)} - {0}

    assert intersections(lists, default) == expected


@settings(max_examples=300, deadline=None)
@given(st.sets(st.integers(0, 63), max_size=7), st.data())
def test_table_counts_the_pairs(positions: set[int], data: st.DataObject) -> None:
    free = sum(1 << position for position in positions)
    masks = st.sets(st.integers(0, 2**64 - 1).map(lambda mask: mask & free), min_size=1)
    left, right = data.draw(masks), data.draw(masks)

    table = LaneTable(BitRuns(free))

    assert sorted(table.intersect(left, right)) == sorted({a & b for a in left for b in right})


@given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 2**64 - 1)))
def test_bits_move_to_the_low_end_and_back(bits: int, masks: list[int]) -> None:
    runs = BitRuns(bits)

    gathered = runs.gather(masks)

    assert all(mask < 1 << runs.width for mask in gathered)
    assert runs.scatter(gathered) == [mask & bits for mask in masks]


@pytest.mark.parametrize(
    "spread",
    [
        pytest.param(1, id="low-nodes"),
        pytest.param(0b1000_0000_0001 << 20, id="two-runs-of-nodes"),
    ],
)
def test_lists_of_many_masks(spread: int) -> None:
    """Large enough for the table: all masks of even size against all that hold a node."""
    even = {NumaMask(m * spread) for m in range(1, 256) if m.bit_count() % 2 == 0}
    odd_wide = {NumaMask(m * spread) for m in range(1, 256) if m.bit_count() > 4 and m & 1}
    default = NumaMask(255 * spread)

    expected = {a & b & c for a in even for b in even for c in odd_wide} - {0}

    assert intersections([even, even, odd_wide], default) == expected

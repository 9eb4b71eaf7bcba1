"""Every mask that comes out when one mask is taken from each list and all are intersected.

Separate from the merge because it is where the work is: lists may hold every subset of the
machine's nodes, so that pairing them off is quadratic in 2**nodes. Small lists are paired;
for large ones the intersections are counted in a table (`lane_table`). Rule TM-28.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import reduce
from operator import and_, or_

from numalign.model.numa_mask import NumaMask
from numalign.topology.lane_table import BitRuns, LaneTable

_LARGEST_TABLE = 18
"""Number of nodes above which a table takes more memory than a decision should."""


def intersections(lists: Sequence[AbstractSet[NumaMask]], default_mask: NumaMask) -> set[NumaMask]:
    """The non-empty intersections of `default_mask` with one mask of each of `lists`.

    Without lists it is `default_mask` alone; with an empty list there are none.
    """
    live = reduce(and_, (reduce(or_, masks, 0) for masks in lists), int(default_mask))
    if not live:
        return set()
    narrowed = sorted(({mask & live for mask in masks} - {0} for masks in lists), key=len)
    if not narrowed:
        return {NumaMask(live)}
    if not narrowed[0]:
        return set()
    # Nodes in every mask are in every result; only the others need telling apart.
    fixed = reduce(and_, (reduce(and_, masks) for masks in narrowed))
    results = _Intersecting(live & ~fixed, fixed).all_of(narrowed)
    return {NumaMask(mask) for mask in results}


class _Intersecting:
    """Intersects sets of masks that differ in the nodes of `free` only."""

    def __init__(self, free: int, fixed: int) -> None:
        self._free = free
        self._fixed = fixed
        self._width = free.bit_count()
        self._table: LaneTable | None = None

    def all_of(self, lists: Iterable[set[int]]) -> set[int]:
        return reduce(self._pair, lists)

    def _pair(self, left: set[int], right: set[int]) -> set[int]:
        # Roughly what a table costs, in units of one pair: some work for each of its lanes,
        # and more for each node that is summed over.
        table_cost = (4 + self._width / 2) * (1 << self._width)
        if self._width > _LARGEST_TABLE or len(left) * len(right) <= table_cost:
            results = {a & b for a in left for b in right}
        else:
            if self._table is None:
                self._table = LaneTable(BitRuns(self._free))
            results = {mask | self._fixed for mask in self._table.intersect(left, right)}
        results.discard(0)
        return results

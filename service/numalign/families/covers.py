"""Quick tests of a choice of how many nodes each class keeps: sums that no solution exceeds.

Each test is a worth for every node and a limit: what is taken away is worth no more than that.
Rows of a single bin give one each, in exact integers, and the prices of the oracle one more
(Lemma 12). A group counts fully with each of its nodes here (Lemma 13).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from numalign.families.packing import Loss, Packing, each_node
from numalign.families.prices import MARGIN, Prices


class Cover:
    """One test over classes in the order of a search."""

    def __init__(
        self,
        classes: Sequence[int],
        removable: int,
        worth: Callable[[int], float],
        limit: float,
    ) -> None:
        self.limit = limit
        by_class = [
            sorted([worth(node) for node in each_node(members & removable)]) for members in classes
        ]
        self._cheapest = [list(accumulate(values, initial=0)) for values in by_class]
        self._from: list[list[float]] = [[0]]
        rest: list[float] = []
        for values in reversed(by_class):
            rest = sorted([*rest, *values])
            self._from.append(list(accumulate(rest, initial=0)))
        self._from.reverse()

    def taken(self, number: int, count: int) -> float | None:
        """What `count` nodes of a class are worth at the least; None if it has not as many."""
        cheapest = self._cheapest[number]
        return cheapest[count] if count < len(cheapest) else None

    def allows(self, so_far: float, depth: int, count: int) -> bool:
        """Whether `count` more nodes of the classes from `depth` on may be taken as well."""
        rest = self._from[depth]
        return count < len(rest) and so_far + rest[count] <= self.limit


def covers_of(packing: Packing, classes: Sequence[int], prices: Prices | None) -> list[Cover]:
    """The tests for choices from `classes`, which part the packing's target."""
    removable = packing.free | packing.open
    covers = []
    if len(packing.bins) == 1:
        covers = [_row_cover(packing, classes, row) for row in packing.bins[0].rows]
    if prices is not None:
        covers.append(price_cover(packing, classes, prices))
    if not covers:
        covers = [Cover(classes, removable, _nothing, 0)]
    return covers


def price_cover(packing: Packing, classes: Sequence[int], prices: Prices) -> Cover:
    """The test that the prices give as they are now."""
    costs, limit = dict(prices.costs), prices.total * (1 + MARGIN)
    removable = packing.free | packing.open
    return Cover(classes, removable, lambda node: costs.get(node, 0.0), limit)


def _row_cover(packing: Packing, classes: Sequence[int], row: Loss) -> Cover:
    gains = {
        node: row.weights[node] + sum(value for group, value in row.groups if group >> node & 1)
        for node in each_node(packing.open)
    }
    lost = sum(row.weights[node] for node in each_node(packing.open))
    lost += sum(value for _, value in row.groups)
    limit = sum(gains.values()) - (lost - row.slack)
    return Cover(classes, packing.free | packing.open, lambda node: gains.get(node, 0), limit)


def _nothing(node: int) -> float:  # noqa: ARG001 - every node is worth the same
    return 0

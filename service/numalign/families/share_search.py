"""Exact search with several bins: a way to share nodes out among them.

Depth first: the forced nodes, dearest first, then as many optional ones of each mask as are
wanted, cheapest first. Each goes into every bin that has room; an optional one may be skipped,
and with it those after it that are exactly like it. Cut off by Lemma 12 on what the bins have
left, and where the same place was reached in vain with at least as much left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from numalign.families.packing import Packing
from numalign.families.prices import MARGIN, Prices
from numalign.families.questions import Choice, Loads
from numalign.families.work import Work

_MOST_REMEMBERED = 64
"""Failures that are remembered at one place of the search."""

_GoOn: TypeAlias = Callable[[], bool]
"""The rest of the search, after a node has found its place."""

_Left: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""What all rows have left, and what the bins hold where that matters (groups)."""


class ShareSearch:
    """The search over one packing, ordered by `prices` as they are when it begins."""

    def __init__(self, packing: Packing, prices: Prices, work: Work) -> None:
        self._packing = packing
        self._prices = prices
        self._work = work

    def run(self, choice: Choice) -> Loads | None:
        """Bins filled as `choice` asks, None if there is no way. Raises OutOfWork."""
        prices = self._prices
        self._loads = Loads(self._packing)
        self._failed: dict[tuple[int, int, int], list[_Left]] = {}
        self._forced = prices.cheapest_first(choice.forced)[::-1]
        self._parts = [(prices.cheapest_first(mask), wanted) for mask, wanted in choice.optional]
        self._rest = [0.0]
        for node in reversed(self._forced):
            self._rest.append(self._rest[-1] + prices.costs[node])
        self._rest.reverse()
        self._sums = [_running_sums([prices.costs[n] for n in nodes]) for nodes, _ in self._parts]
        # What the parts after each one cost at the least.
        self._later = [0.0] * (len(self._parts) + 1)
        for i in range(len(self._parts) - 1, -1, -1):
            self._later[i] = self._later[i + 1] + self._sums[i][self._parts[i][1]]
        return self._loads if self._place_forced(0) else None

    def _place_forced(self, position: int) -> bool:
        if position == len(self._forced):
            return self._place_optional(0, 0, self._parts[0][1] if self._parts else 0)
        self._work.step()
        place = (-1, position, 0)
        if self._hopeless(self._rest[position] + self._later[0]) or self._known(place):
            return False
        if self._into_bins(self._forced[position], lambda: self._place_forced(position + 1)):
            return True
        self._remember(place)
        return False

    def _place_optional(self, part: int, position: int, wanted: int) -> bool:
        if not wanted:
            part += 1
            if part >= len(self._parts):
                return True
            return self._place_optional(part, 0, self._parts[part][1])
        nodes = self._parts[part][0]
        if len(nodes) - position < wanted:
            return False
        self._work.step()
        sums = self._sums[part]
        place = (part, position, wanted)
        rest = sums[position + wanted] - sums[position] + self._later[part + 1]
        if self._hopeless(rest) or self._known(place):
            return False
        if self._into_bins(
            nodes[position], lambda: self._place_optional(part, position + 1, wanted - 1)
        ):
            return True
        following = position + 1
        while following < len(nodes) and self._alike(nodes[position], nodes[following]):
            following += 1
        if self._place_optional(part, following, wanted):
            return True
        self._remember(place)
        return False

    def _into_bins(self, node: int, go_on: _GoOn) -> bool:
        for number, costs in self._prices.bins_of(node):
            before = self._loads.take(number, node, costs)
            if before is None:
                continue
            if go_on():
                return True
            self._loads.give_back(number, node, before)
        return False

    def _hopeless(self, rest: float) -> bool:
        """Whether what is still to be placed costs more than what is left is worth (Lemma 12)."""
        worth = 0.0
        for taker, left, prices in zip(
            self._packing.bins, self._loads.left, self._prices.prices, strict=True
        ):
            for row, room, price in zip(taker.rows, left, prices, strict=True):
                worth += price * (room / row.slack) if row.slack else price
        return rest > worth * (1 + MARGIN) + MARGIN * self._prices.total

    def _alike(self, node: int, other: int) -> bool:
        if self._packing.options[node] != self._packing.options[other]:
            return False
        return not self._packing.has_groups or all(
            (group >> node & 1) == (group >> other & 1)
            for taker in self._packing.bins
            for row in taker.rows
            for group, _ in row.groups
        )

    def _now(self) -> _Left:
        left = tuple([room for rooms in self._loads.left for room in rooms])
        return left, tuple(self._loads.taken) if self._packing.has_groups else ()

    def _known(self, place: tuple[int, int, int]) -> bool:
        """Whether this place failed before with at least as much left in every row."""
        failures = self._failed.get(place)
        if not failures:
            return False
        left, taken = self._now()
        return any(
            taken == then and all(room <= had for room, had in zip(left, had_left, strict=True))
            for had_left, then in failures
        )

    def _remember(self, place: tuple[int, int, int]) -> None:
        failures = self._failed.setdefault(place, [])
        if len(failures) < _MOST_REMEMBERED:
            failures.append(self._now())


def _running_sums(costs: list[float]) -> list[float]:
    sums = [0.0]
    for cost in costs:
        sums.append(sums[-1] + cost)
    return sums

"""A bound on distance and rows together: what is close may not fit, and what fits may not be close.

Lemma 17: give each cover a price. A solution takes no more than the cover's limit, so its sum of
distances is at least the same sum with all that it takes charged, less the prices of the limits.
The least of that over all choices, with pairs as far apart as in the tree of nearest classes, is
put together class by class.

Separate from the bounds on distance alone, since it costs more to set up: a search that ends soon
does without.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf

from numalign.families.covers import Cover
from numalign.families.prices import MARGIN
from numalign.families.twins import Join, Side, joined, nearest_tree

_ROUNDS = 16
"""How often prices are adjusted, once for a search."""

_TOO_FAR = 1 << 62
"""Stands for the sum of distances where no choice can be covered at all."""


class JointBound:
    """The bound of one search, at prices that suit it."""

    def __init__(self, side: Side, covers: Sequence[Cover], aim: int) -> None:
        """Settle on prices; `aim` is the sum of distances that is to be exceeded."""
        self._side = side
        self._limits = [cover.limit for cover in covers]
        self._alone = [
            [
                inf
                if any(cover.taken(a, _gone(side, a, k)) is None for cover in covers)
                else k * side.own[a] + k * (k - 1) // 2 * side.within[a]
                for k in range(size + 1)
            ]
            for a, size in enumerate(side.sizes)
        ]
        self._taken = [
            [
                [cover.taken(a, _gone(side, a, k)) or 0 for k in range(size + 1)]
                for a, size in enumerate(side.sizes)
            ]
            for cover in covers
        ]
        self._prices = [0.0] * len(covers)
        self._settle(aim)
        self._slop = MARGIN * (1 + abs(aim) + sum(self._charges(self._limits)))
        self._later: dict[int, list[float]] = {}

    def at(
        self, depth: int, left: int, total: int, near: Sequence[int], loads: Sequence[float]
    ) -> int:
        """No choice of `left` nodes from the classes from `depth` on comes to less.

        `total` and `loads` are what is picked so far; `near` is what each class costs per node
        beside that.
        """
        if depth not in self._later:
            self._later[depth] = self._cheapest(depth)
        least = total + self._later[depth][left] + self._beside(depth, left, near)
        least += sum(self._charges(loads[: len(self._limits)])) - sum(self._charges(self._limits))
        return _TOO_FAR if least == inf else ceil(least - self._slop)

    def _charges(self, amounts: Sequence[float]) -> list[float]:
        return [price * amount for price, amount in zip(self._prices, amounts, strict=True)]

    def _beside(self, depth: int, left: int, near: Sequence[int]) -> int:
        offers = sorted(zip(near[depth:], self._side.sizes[depth:], strict=True))
        total = 0
        for cost, size in offers:
            taken = min(size, left)
            total += cost * taken
            left -= taken
            if not left:
                break
        return total

    def _classes(self, depth: int) -> dict[int, list[float]]:
        """What 0, 1, 2 ... picks of each class cost alone, with what they take charged."""
        charged = [(p, taken) for p, taken in zip(self._prices, self._taken, strict=True) if p]
        return {
            a: [
                cost + sum([price * taken[a][k] for price, taken in charged])
                for k, cost in enumerate(self._alone[a])
            ]
            for a in range(depth, len(self._alone))
        }

    def _cheapest(self, depth: int) -> list[float]:
        costs = self._classes(depth)
        last = depth
        for step, first, second in nearest_tree(self._side, depth):
            costs[first] = joined(costs[first], costs.pop(second), step, self._side.pick)
            last = first
        return costs[last]

    def _settle(self, aim: int) -> None:
        """Find prices whose bound at the root is high: raise those of covers that overflow."""
        side = self._side
        scales = [max(abs(limit), 1.0) for limit in self._limits]
        joins = nearest_tree(side, 0)
        best, highest, pace = list(self._prices), -inf, 1.0
        for _ in range(_ROUNDS):
            cost, picks = _cheapest_picks(self._classes(0), joins, side.pick)
            if cost == inf:
                break
            bound = side.base + cost - sum(self._charges(self._limits))
            if bound > highest:
                best, highest = list(self._prices), bound
            else:
                pace /= 2
            over = [
                (sum([taken[a][k] for a, k in enumerate(picks)]) - limit) / scale
                for taken, limit, scale in zip(self._taken, self._limits, scales, strict=True)
            ]
            steepness = sum([one * one for one in over])
            if bound > aim or not steepness:
                break
            length = pace * max(aim - bound, 1) / steepness
            self._prices = [
                max(0.0, price + length * one / scale)
                for price, one, scale in zip(self._prices, over, scales, strict=True)
            ]
        self._prices = best


def _gone(side: Side, number: int, picks: int) -> int:
    """How many nodes of a class are taken away when so many of it are picked."""
    return side.sizes[number] - picks if side.keeps else picks


def _cheapest_picks(
    costs: dict[int, list[float]], joins: Sequence[Join], picks: int
) -> tuple[float, list[int]]:
    """The least that `picks` nodes cost, and how many of each class those are."""
    counts = [0] * len(costs)
    splits: list[list[int]] = []
    last = 0
    for step, first, second in joins:
        left, right = costs[first], costs[second]
        both: list[float] = []
        split: list[int] = []
        for count in range(min(len(left) + len(right) - 2, picks) + 1):
            low, high = max(0, count - len(right) + 1), min(count, len(left) - 1)
            cost, share = min(
                [
                    (left[i] + right[count - i] + step * i * (count - i), i)
                    for i in range(low, high + 1)
                ]
            )
            both.append(cost)
            split.append(share)
        costs[first] = both
        splits.append(split)
        last = first
    cost = costs[last][picks]
    counts[last] = picks
    for (_, first, second), split in zip(reversed(joins), reversed(splits), strict=True):
        whole = counts[first]
        counts[first] = split[whole]
        counts[second] = whole - split[whole]
    return cost, counts

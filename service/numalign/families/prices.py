"""Prices on the rows of the bins: a bound on what can be taken, and a guess at how.

Every row r has a multiplier, its price; what a node costs is the least that its bins charge.
Lemma 12: all nodes of a solution together cost at most the sum of the prices, because no load
is larger than its slack. So if the nodes that have to be taken, with the cheapest others, cost
more, there is no solution. Prices are kept from one question to the next, which differs little.
"""

from __future__ import annotations

from math import exp

from numalign.families.packing import Packing, each_node
from numalign.families.questions import Choice, Loads
from numalign.families.work import Work

ROUNDS = 10
"""How often prices are adjusted before an exact search begins."""

MARGIN = 1e-6
"""By how much, relative, a bound has to be exceeded: far above what rounding can do."""

_STEP = 1.5


class Prices:
    """The prices of one packing."""

    def __init__(self, packing: Packing) -> None:
        self._packing = packing
        self._shares = {
            node: tuple(
                (
                    number,
                    tuple(
                        cost / row.slack if row.slack else 0.0
                        for cost, row in zip(costs, packing.bins[number].rows, strict=True)
                    ),
                )
                for number, costs in options
            )
            for node, options in packing.options.items()
        }
        self.prices = [[1.0] * len(taker.rows) for taker in packing.bins]
        self.costs: dict[int, float] = {}
        self._favoured: dict[int, int] = {}
        self._reprice()

    @property
    def total(self) -> float:
        """What all nodes of a solution cost at most (Lemma 12)."""
        return sum(map(sum, self.prices))

    def settle(self, choice: Choice, work: Work) -> Loads | bool | None:
        """Bins filled as `choice` asks; False if that is impossible, None if it is not known."""
        for _ in range(ROUNDS):
            work.rounds += 1
            nodes, cost = self._cheapest(choice)
            if cost > self.total * (1 + MARGIN):
                return False
            if work.heuristics:
                filled = self._filled(choice)
                if filled is not None:
                    return filled
            if not self._adjust(nodes):
                break
        return None

    def cheapest_first(self, mask: int) -> list[int]:
        """Open nodes of `mask` by what they cost."""
        return sorted(each_node(mask), key=self.costs.__getitem__)

    def bins_of(self, node: int) -> list[tuple[int, tuple[int, ...]]]:
        """The bins that can take `node`, with its costs, cheapest first."""
        options = self._packing.options[node]
        if len(options) == 1:
            return list(options)
        charged = [self._charge(number, shares) for number, shares in self._shares[node]]
        order = sorted(range(len(options)), key=charged.__getitem__)
        return [options[i] for i in order]

    def _cheapest(self, choice: Choice) -> tuple[list[int], float]:
        nodes = list(each_node(choice.forced))
        for mask, wanted in choice.optional:
            nodes += self.cheapest_first(mask)[:wanted]
        return nodes, sum([self.costs[node] for node in nodes])

    def _filled(self, choice: Choice) -> Loads | None:
        loads = Loads(self._packing)
        for node in reversed(self.cheapest_first(choice.forced)):
            if not self._placed(loads, node):
                return None
        for mask, wanted in choice.optional:
            missing = wanted
            for node in self.cheapest_first(mask):
                if not missing:
                    break
                missing -= self._placed(loads, node)
            if missing:
                return None
        return loads

    def _placed(self, loads: Loads, node: int) -> bool:
        return any(
            loads.take(number, node, costs) is not None for number, costs in self.bins_of(node)
        )

    def _charge(self, number: int, shares: tuple[float, ...]) -> float:
        return sum(
            [price * share for price, share in zip(self.prices[number], shares, strict=True)]
        )

    def _adjust(self, nodes: list[int]) -> bool:
        """Raise the prices of rows that `nodes` overload; False where no row is to be priced."""
        loads = [[0.0] * len(prices) for prices in self.prices]
        for node in nodes:
            favoured = self._favoured[node]
            for number, shares in self._shares[node]:
                if number == favoured:
                    for i, share in enumerate(shares):
                        loads[number][i] += share
        highest = 0.0
        for prices, loaded in zip(self.prices, loads, strict=True):
            for i, load in enumerate(loaded):
                prices[i] *= exp(_STEP * (min(load, 3.0) - 1))
                highest = max(highest, prices[i])
        if not highest:
            return False
        for prices in self.prices:
            prices[:] = [max(price / highest, 1e-9) for price in prices]
        self._reprice()
        return True

    def _reprice(self) -> None:
        for node, options in self._shares.items():
            if len(options) == 1:
                number, shares = options[0]
                self.costs[node] = self._charge(number, shares)
                self._favoured[node] = number
            else:
                cost, favoured = min(
                    [(self._charge(number, shares), number) for number, shares in options]
                )
                self.costs[node] = cost
                self._favoured[node] = favoured

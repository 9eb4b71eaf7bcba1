"""Is there a solution that takes these nodes, and the rest from those? Section "The oracle".

The steps in their order; the first three settle almost every question. A yes always comes with
a solution in exact integers, a no from a bound or from a finished search (Lemma 14).
"""

from __future__ import annotations

from collections.abc import Sequence

from numalign.families.keep_search import KeepSearch
from numalign.families.packing import Packing, each_node
from numalign.families.prices import Prices
from numalign.families.questions import Choice, Loads, Solution
from numalign.families.share_search import ShareSearch
from numalign.families.work import Work


class Oracle:
    """Answers questions about one packing, and keeps what it learned from them."""

    def __init__(self, packing: Packing, work: Work) -> None:
        self.packing = packing
        self.work = work
        self._prices: Prices | None = None
        self._additive = [not any(row.groups for row in taker.rows) for taker in packing.bins]

    @property
    def prices(self) -> Prices | None:
        """The prices that the last questions settled on, if any was asked that needs them."""
        return self._prices

    def solve(
        self, forced: int, allowed: int, classes: Sequence[int], quotas: Sequence[int]
    ) -> Solution | None:
        """A solution that takes `forced`, and of each class as many nodes as its quota says.

        `classes` part the target; `allowed` holds `forced` and all else that may be taken. None
        if there is no solution. Raises OutOfWork.
        """
        self.work.questions += 1
        packing = self.packing
        if forced & packing.fixed:
            return None
        free = forced & packing.free
        optional: list[tuple[int, int]] = []
        for members, quota in zip(classes, quotas, strict=True):
            missing = quota - (forced & members).bit_count()
            if missing < 0:
                return None
            # Step 1: what costs nothing is taken first.
            spare = allowed & members & packing.free & ~forced
            if spare.bit_count() <= missing:
                free |= spare
                missing -= spare.bit_count()
            else:
                free |= _highest(spare, missing)
                missing = 0
            if missing:
                candidates = allowed & members & packing.open & ~forced
                if candidates.bit_count() < missing:
                    return None
                optional.append((candidates, missing))
        choice = Choice(forced & packing.open, tuple(optional))
        if not choice.forced and not optional:
            return Solution(free, [0] * len(packing.bins))
        loads = self._loaded(choice)
        return None if loads is None else Solution(free, loads.taken)

    def _loaded(self, choice: Choice) -> Loads | None:
        if len(self.packing.bins) == 1:
            rows = self.packing.bins[0].rows
            if len(rows) == 1 and self._additive[0]:
                return self._sorted_fit(choice)
            if any(
                self._least_loss(choice, row) > self.packing.bins[0].rows[row].slack
                for row in range(len(rows))
            ):
                return None
        if self._prices is None:
            self._prices = Prices(self.packing)
        settled = self._prices.settle(choice, self.work)
        if settled is False:
            return None
        if isinstance(settled, Loads):
            return settled
        if len(self.packing.bins) == 1:
            return KeepSearch(self.packing, self.work).run(choice)
        return ShareSearch(self.packing, self._prices, self.work).run(choice)

    def _sorted_fit(self, choice: Choice) -> Loads | None:
        """Step 2: one bin, one threshold, no groups; the lightest nodes fit or nothing does."""
        weights = self.packing.bins[0].rows[0].weights
        loads = Loads(self.packing)
        chosen = list(each_node(choice.forced))
        for mask, wanted in choice.optional:
            chosen += sorted(each_node(mask), key=weights.__getitem__)[:wanted]
        for node in chosen:
            if loads.take(0, node, (weights[node],)) is None:
                return None
        return loads

    def _least_loss(self, choice: Choice, row: int) -> int:
        """What a row of the only bin loses at the least, its groups left aside."""
        weights = self.packing.bins[0].rows[row].weights
        lost = sum([weights[node] for node in each_node(choice.forced)])
        for mask, wanted in choice.optional:
            lost += sum(sorted([weights[node] for node in each_node(mask)])[:wanted])
        return lost


def _highest(mask: int, count: int) -> int:
    chosen = 0
    for _ in range(count):
        top = 1 << (mask.bit_length() - 1)
        chosen |= top
        mask ^= top
    return chosen

"""The set of a given size whose nodes are closest together; section "Closest mode".

Minimises the sum of distances, then the integer. How many nodes each class of twins keeps is
searched depth first; for a complete choice the least integer is the packing problem again
(Lemma 16). Every cut is a bound that no better solution is under.
"""

from __future__ import annotations

from numalign.families.covers import Cover, covers_of, price_cover
from numalign.families.distances import Distances
from numalign.families.found import Found
from numalign.families.joint_bound import JointBound
from numalign.families.narrowest import least
from numalign.families.oracle import Oracle
from numalign.families.packing import each_node
from numalign.families.twins import Rest, Side, smaller_side
from numalign.families.work import OutOfWork

_MOST_EXCHANGES = 40
"""How many exchanges of two nodes are tried to better the first solution."""

_SHORT_SEARCH = 150
"""Up to so many branches that distance alone does not cut, no other bound pays."""

_REFUSED_TO_LEARN = 8
"""After so many complete choices without a solution, one more cover is made of the prices."""

_MOST_LESSONS = 12


def closest(
    oracle: Oracle, remain: int, distances: Distances, incumbent: int | None
) -> Found | None:
    """The closest set of `remain` nodes, None if there is none better than `incumbent`.

    `incumbent` has `remain` nodes as well. Raises OutOfWork where not even that there is a
    solution could be settled, and what `distances` raises for nodes that it does not know.
    """
    target = oracle.packing.target
    distances.require(target)
    taken = target.bit_count() - remain
    witness = oracle.solve(0, target, (target,), (taken,))
    if witness is None:
        return None
    search = _Search(oracle, smaller_side(target, remain, distances), distances, incumbent)
    first = target & ~witness.dropped
    try:
        if oracle.work.heuristics:
            search.improve(first)
        search.run()
    except OutOfWork:
        search.consider(first)
        return Found(search.mask, proved=False)
    if search.is_new or not search.proved:
        return Found(search.mask, search.proved)
    return None


class _Search:
    """One search, with the best solution so far."""

    def __init__(
        self, oracle: Oracle, side: Side, distances: Distances, incumbent: int | None
    ) -> None:
        self._oracle = oracle
        self._side = side
        self._rest = Rest(side)
        self._covers: list[Cover] = []
        self._jointly: JointBound | None = None
        self._asked = 0
        self._refused = 0
        self._lessons = 0
        self._distances = distances
        self.is_new = False
        self.proved = True
        self.mask = 0
        self._sum: int | None = None
        if incumbent is not None:
            self.mask = incumbent
            self._sum = distances.sum_of(incumbent)

    def consider(self, mask: int) -> None:
        """Take a solution if it is the best so far."""
        total = self._distances.sum_of(mask)
        if self._sum is None or (total, mask) < (self._sum, self.mask):
            self.mask, self._sum, self.is_new = mask, total, True

    def improve(self, first: int) -> None:
        """Better a first solution by exchanging nodes of two classes, while that helps."""
        side = self._side
        counts = [(first & members).bit_count() for members in side.classes]
        tried = 0
        while True:
            before = tried
            for gain, out, into in sorted(self._exchanges(counts)):
                if gain >= 0 or tried >= _MOST_EXCHANGES:
                    break
                tried += 1
                changed = list(counts)
                changed[out] -= 1
                changed[into] += 1
                if self._solvable(changed):
                    counts = changed
                    break
            else:
                break
            if tried == before or tried >= _MOST_EXCHANGES:
                break
        found = least(self._oracle, side.classes, self._quotas(counts))
        if found is not None:
            self.consider(found.mask)

    def run(self) -> None:
        """Search all choices. Raises OutOfWork."""
        self._covers = covers_of(self._oracle.packing, self._side.classes, self._oracle.prices)
        near = [0] * len(self._side.classes)
        self._choose(0, self._side.pick, self._side.base, near, [0] * len(self._covers), [])

    def _exchanges(self, counts: list[int]) -> list[tuple[int, int, int]]:
        """By how much the sum of distances grows if one node of a class gives way to another's."""
        classes, distances = self._side.classes, self._distances
        firsts = [next(each_node(members)) for members in classes]
        beside = [
            sum(
                [
                    count * distances.both[first][firsts[b]]
                    for b, count in enumerate(counts)
                    if b != a
                ]
            )
            + counts[a] * self._side.within[a]
            + distances.own[first]
            for a, first in enumerate(firsts)
        ]
        return [
            (
                beside[b] - beside[a] - distances.both[firsts[a]][firsts[b]] + self._side.within[a],
                a,
                b,
            )
            for a, count in enumerate(counts)
            if count
            for b, members in enumerate(classes)
            if a != b and counts[b] < members.bit_count()
        ]

    def _solvable(self, counts: list[int]) -> bool:
        target = self._oracle.packing.target
        quotas = self._quotas(counts)
        return self._oracle.solve(0, target, self._side.classes, quotas) is not None

    def _quotas(self, counts: list[int]) -> list[int]:
        return [size - count for size, count in zip(self._side.sizes, counts, strict=True)]

    def _choose(
        self,
        depth: int,
        missing: int,
        total: int,
        near: list[int],
        taken: list[float],
        chosen: list[int],
    ) -> None:
        """Go through how many nodes of the class at `depth` are picked, many first."""
        side = self._side
        if depth == len(side.sizes):
            self._complete(total, chosen)
            return
        after = sum(side.sizes[depth + 1 :])
        size = side.sizes[depth]
        for count in range(min(size, missing), max(0, missing - after) - 1, -1):
            self._oracle.work.vector()
            gone = size - count if side.keeps else count
            loads = self._loads(depth, gone, taken, chosen)
            left = missing - count
            if loads is None or not self._covered(loads, depth + 1, left):
                continue
            cost = count * (side.own[depth] + near[depth])
            cost += count * (count - 1) // 2 * side.within[depth]
            row = side.between[depth]
            beside = [cost_so_far + count * row[a] for a, cost_so_far in enumerate(near)]
            picked = [*chosen, count]
            if self._may_be_better(depth + 1, left, total + cost, beside, picked, loads):
                self._choose(depth + 1, left, total + cost, beside, loads, picked)

    def _loads(
        self, depth: int, gone: int, taken: list[float], chosen: list[int]
    ) -> list[float] | None:
        if len(taken) < len(self._covers):
            taken += [self._taken_by(cover, chosen) for cover in self._covers[len(taken) :]]
        loads = []
        for cover, so_far in zip(self._covers, taken, strict=True):
            more = cover.taken(depth, gone)
            if more is None:
                return None
            loads.append(so_far + more)
        return loads

    def _taken_by(self, cover: Cover, chosen: list[int]) -> float:
        """What a cover that came later than the choices `chosen` makes of them."""
        side = self._side
        worth = 0.0
        for number, count in enumerate(chosen):
            gone = side.sizes[number] - count if side.keeps else count
            worth += cover.taken(number, gone) or 0.0
        return worth

    def _covered(self, loads: list[float], depth: int, left: int) -> bool:
        gone = sum(self._side.sizes[depth:]) - left if self._side.keeps else left
        return all(
            cover.allows(load, depth, gone) for cover, load in zip(self._covers, loads, strict=True)
        )

    def _may_be_better(
        self,
        depth: int,
        left: int,
        total: int,
        near: list[int],
        picked: list[int],
        loads: list[float],
    ) -> bool:
        if self._sum is None:
            return True
        bound = total
        if left:
            bound += self._rest.by_pairs(depth, left, near)
            if bound <= self._sum:
                bound = max(bound, total + self._rest.by_tree(depth, left, near))
            if bound <= self._sum and (joint := self._joint(self._sum)) is not None:
                bound = max(bound, joint.at(depth, left, total, near, loads))
        if bound != self._sum:
            return bound < self._sum
        return self._least_integer(depth, left, picked) < self.mask

    def _joint(self, aim: int) -> JointBound | None:
        """The bound on distance and rows, once the search has turned out to be long."""
        if self._jointly is None:
            self._asked += 1
            if self._asked > _SHORT_SEARCH or not self._oracle.work.heuristics:
                self._jointly = JointBound(self._side, self._covers, aim)
        return self._jointly

    def _least_integer(self, depth: int, left: int, picked: list[int]) -> int:
        """No set that this branch leads to is a smaller integer."""
        side = self._side
        mask = 0
        for members, size, count in zip(side.classes, side.sizes, picked, strict=False):
            mask |= _lowest(members, count if side.keeps else size - count)
        rest = 0
        for members in side.classes[depth:]:
            rest |= members
        return mask | _lowest(rest, left if side.keeps else rest.bit_count() - left)

    def _complete(self, total: int, chosen: list[int]) -> None:
        side = self._side
        below = None
        if self._sum is not None:
            if total > self._sum:
                return
            below = self.mask if total == self._sum else None
        quotas = chosen
        if side.keeps:
            quotas = [size - count for size, count in zip(side.sizes, chosen, strict=True)]
        found = least(self._oracle, side.classes, quotas, below=below)
        if found is not None:
            self.proved = self.proved and found.proved
            self.consider(found.mask)
        else:
            self._learn()

    def _learn(self) -> None:
        """Let the prices that choices were refused at last cut others off earlier."""
        self._refused += 1
        prices = self._oracle.prices
        every = _REFUSED_TO_LEARN if self._oracle.work.heuristics else 1
        if prices is None or self._refused % every or self._lessons >= _MOST_LESSONS:
            return
        self._lessons += 1
        self._covers.append(price_cover(self._oracle.packing, self._side.classes, prices))


def _lowest(mask: int, count: int) -> int:
    chosen = 0
    for _ in range(count):
        low = mask & -mask
        chosen |= low
        mask ^= low
    return chosen

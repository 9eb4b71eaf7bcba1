"""Which NUMA nodes to spread a request over, so that what is left is most even.

All combinations of a given number of nodes are compared, as the kubelet does, with two
shortcuts that change no result: combinations with the same free CPUs in the same order are
judged once, and the deviation is computed once for each sum of squares. Beyond a fixed
amount of work, which only machines with many NUMA nodes reach, the nodes with the most free
CPUs are taken instead: they leave the smallest deviation, but ties may fall otherwise.
Rules CPU-63, CPU-65, CPU-65a, CPU-65b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

from numalign.cpu.balance import deviation
from numalign.cpu.remembered import Combination, Remembered

MAX_COMBINATIONS = 60_000
"""Combinations of nodes of one size that are still compared."""

MAX_SUBSETS = 200_000
"""Choices of nodes for the remainder that are still compared, over all combinations."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Positions of the nodes that get `share` CPUs each, and of those that share `rest`."""

    nodes: Combination
    share: int
    takers: Combination
    rest: int


@dataclass(frozen=True, slots=True)
class _Judged:
    """The balance of a combination, and the positions in it that share the remainder."""

    balance: float
    takers: Combination


class _TooMuchWork(Exception):
    """The search would take too long to be finished."""


class Distribution:
    """One request over nodes with `free` CPUs each; it fits the machine and the group size.

    After any complete choice the free CPUs of all nodes have the same sum, so the deviation
    depends on the sum of their squares alone.
    """

    def __init__(self, free: Sequence[int], count: int, group: int) -> None:
        self._free = free
        self._count = count
        self._group = group
        self._deviations: dict[int, float] = {}
        self._subsets_left = MAX_SUBSETS

    def over(self, size: int) -> Spread | None:
        """The combination of `size` nodes to use; None if none fits (CPU-63)."""
        share = self._count // size // self._group * self._group
        rest = self._count - share * size
        if comb(len(self._free), size) <= MAX_COMBINATIONS:
            try:
                return self._compared(size, share, rest)
            except _TooMuchWork:
                pass
        return self._fullest(size, share, rest)

    def _compared(self, size: int, share: int, rest: int) -> Spread | None:
        """The best of all combinations; the first of equals (CPU-63 rule 5)."""
        free = self._free
        judged: dict[Combination, _Judged | None] = {}
        best: _Judged | None = None
        kept = Remembered(size)
        for combo in combinations(range(len(free)), size):
            kept.generated(combo)
            if best is not None and best.balance == 0:
                break
            values = tuple([free[i] for i in combo])
            if values in judged:
                found = judged[values]
            else:
                found = judged[values] = self._judge(combo, values, share, rest)
            if found is not None and (best is None or found.balance < best.balance):
                best = found
                kept.keep(combo)
                takers = tuple([combo[i] for i in found.takers])
        if kept.value is None:
            return None
        return Spread(kept.value, share, takers, rest)

    def _judge(
        self, combo: Combination, values: Combination, share: int, rest: int
    ) -> _Judged | None:
        """The balance that the combination leaves; None if it cannot be used."""
        group = self._group
        if min(values) < share:
            return None
        if sum([value // group for value in values]) * group < self._count:
            return None
        after = list(self._free)
        for i in combo:
            after[i] -= share
        if not rest:
            return _Judged(self._deviation(after), ())
        return self._best_takers(combo, after, rest // group)

    def _best_takers(self, combo: Combination, after: list[int], groups: int) -> _Judged | None:
        """The nodes of the combination to take the `groups` left over from."""
        group = self._group
        able = [i for i, node in enumerate(combo) if after[node] >= group]
        self._subsets_left -= 1 << len(able)
        if self._subsets_left < 0:
            raise _TooMuchWork
        best_balance = float("inf")
        best: Remembered | None = None
        for size in range(len(able), 0, -1):
            kept = Remembered(size)
            for subset in combinations(able, size):
                kept.generated(subset)
                nodes = [combo[i] for i in subset]
                # Nodes whose whole groups do not cover the remainder cannot be used, even
                # if their CPUs would (CPU-65b).
                if sum([after[node] // group for node in nodes]) < groups:
                    continue
                balance = self._deviation(_taken_in_turn(after, nodes, groups, group))
                if balance < best_balance:
                    best_balance, best = balance, kept
                    kept.keep(subset)
        if best is None or best.value is None:
            return None
        return _Judged(best_balance, best.value)

    def _deviation(self, after: list[int]) -> float:
        squares = sum([free * free for free in after])
        found = self._deviations.get(squares)
        if found is None:
            found = self._deviations[squares] = deviation(after)
        return found

    def _fullest(self, size: int, share: int, rest: int) -> Spread | None:
        """The nodes with the most free CPUs; if these do not fit, no combination does."""
        group = self._group
        by_free = sorted(range(len(self._free)), key=lambda i: (-self._free[i], i))
        nodes = by_free[:size]
        if self._free[nodes[-1]] < share:
            return None
        if sum([self._free[i] // group for i in nodes]) * group < self._count:
            return None
        able = [i for i in nodes if self._free[i] - share >= group]
        return Spread(tuple(sorted(nodes)), share, tuple(sorted(able[: rest // group])), rest)


def _taken_in_turn(after: list[int], nodes: Sequence[int], groups: int, group: int) -> list[int]:
    """What is free after `groups` groups were taken from the nodes in turn.

    The nodes must hold that many whole groups.
    """
    left = after.copy()
    while groups:
        for i in nodes:
            if left[i] >= group:
                left[i] -= group
                groups -= 1
                if not groups:
                    break
    return left

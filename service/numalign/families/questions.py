"""What searches ask of a packing, and what they get: plain values.

Separate from the oracle so that the exact searches can use them without knowing it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numalign.families.packing import Packing


@dataclass(slots=True)
class Solution:
    """A way to take nodes: `free` ones, and open ones by bin; never more than a bin can lose."""

    free: int
    taken: list[int]

    @property
    def dropped(self) -> int:
        """All nodes that are taken away."""
        dropped = self.free
        for mask in self.taken:
            dropped |= mask
        return dropped


@dataclass(frozen=True, slots=True)
class Choice:
    """Open nodes to take: all of `forced`, and as many of each mask of `optional` as it says.

    The masks are disjoint.
    """

    forced: int
    optional: tuple[tuple[int, int], ...]


class Loads:
    """Bins being filled, in exact integers."""

    __slots__ = ("_packing", "left", "taken")

    def __init__(self, packing: Packing) -> None:
        self._packing = packing
        self.left = [[row.slack for row in taker.rows] for taker in packing.bins]
        self.taken = [0] * len(packing.bins)

    def take(self, number: int, node: int, costs: Sequence[int]) -> list[int] | None:
        """Put `node` into bin `number`; what was left before it, None if there is no room."""
        left = self.left[number]
        mask = self.taken[number] | 1 << node
        after = [room - cost for room, cost in zip(left, costs, strict=True)]
        if self._packing.has_groups:
            for i, row in enumerate(self._packing.bins[number].rows):
                for group, value in row.groups:
                    if group >> node & 1 and not group & ~mask:
                        after[i] -= value
        if after and min(after) < 0:
            return None
        self.left[number] = after
        self.taken[number] = mask
        return left

    def give_back(self, number: int, node: int, before: list[int]) -> None:
        """Undo the last `take` of the bin."""
        self.left[number] = before
        self.taken[number] &= ~(1 << node)


def fits(packing: Packing, number: int, mask: int) -> bool:
    """Whether bin `number` can lose all nodes of `mask`."""
    for row in packing.bins[number].rows:
        lost = 0
        weights = row.weights
        bits = mask
        while bits:
            low = bits & -bits
            lost += weights[low.bit_length() - 1]
            bits ^= low
        for group, value in row.groups:
            if not group & ~mask:
                lost += value
        if lost > row.slack:
            return False
    return True

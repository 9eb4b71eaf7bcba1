"""Which masks two sets of masks intersect to, counted in a table with a lane per mask.

The number of pairs whose intersection *contains* m is the number of left masks that contain
m times the number of right masks that do. Both factors are sums over supersets, and from the
product of the two the number of pairs that intersect to *exactly* m is found by undoing such
a sum. Summing and undoing take one step per node for the whole table at once, because the
table is one big integer and a step is a shift, a mask and an addition.

No lane ever overflows into the next: with 2**k lanes a count is at most 4**k, and half-undone
sums are still counts, so nothing is negative.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import mul
from struct import pack, unpack

_LANE_BYTES = 8
_LANE_BITS = 64


class BitRuns:
    """The set bits of a mask as runs, to move them to the low end and back."""

    def __init__(self, bits: int) -> None:
        self.width = bits.bit_count()
        self._runs: list[tuple[int, int, int]] = []
        offset = 0
        while bits:
            start = (bits & -bits).bit_length() - 1
            run = bits >> start
            length = (~run & (run + 1)).bit_length() - 1
            self._runs.append((start, (1 << length) - 1, offset))
            offset += length
            bits &= -1 << (start + length)
        self._in_place = all(start == offset for start, _, offset in self._runs)

    def gather(self, masks: Iterable[int]) -> list[int]:
        """Each mask with the chosen bits side by side from bit 0 and all others dropped."""
        if self._in_place:
            kept = (1 << self.width) - 1
            return [mask & kept for mask in masks]
        return [
            sum((mask >> start & ones) << offset for start, ones, offset in self._runs)
            for mask in masks
        ]

    def scatter(self, gathered: Iterable[int]) -> list[int]:
        """The inverse: the low bits back in their places."""
        if self._in_place:
            return list(gathered)
        return [
            sum((mask >> offset & ones) << start for start, ones, offset in self._runs)
            for mask in gathered
        ]


class LaneTable:
    """Intersects sets of masks over the chosen bits; reusable for many sets."""

    def __init__(self, runs: BitRuns) -> None:
        self._runs = runs
        self._size = 1 << runs.width
        self._format = f"<{self._size}Q"
        self._steps = [(_LANE_BITS << bit, self._lanes_without(bit)) for bit in range(runs.width)]

    def intersect(self, left: Iterable[int], right: Iterable[int]) -> list[int]:
        """The distinct intersections of a mask of `left` and one of `right`, chosen bits only."""
        products = map(mul, self._containing(left), self._containing(right))
        exact = int.from_bytes(pack(self._format, *products), "little")
        for shift, lanes in self._steps:
            exact -= exact >> shift & lanes
        return self._runs.scatter(lane for lane, pairs in enumerate(self._unpack(exact)) if pairs)

    def _containing(self, masks: Iterable[int]) -> tuple[int, ...]:
        """For each lane, how many of the distinct `masks` contain it."""
        table = bytearray(_LANE_BYTES * self._size)
        for mask in self._runs.gather(masks):
            table[_LANE_BYTES * mask] = 1
        sums = int.from_bytes(table, "little")
        for shift, lanes in self._steps:
            sums += sums >> shift & lanes
        return self._unpack(sums)

    def _unpack(self, table: int) -> tuple[int, ...]:
        return unpack(self._format, table.to_bytes(_LANE_BYTES * self._size, "little"))

    def _lanes_without(self, bit: int) -> int:
        """All ones in the lanes whose mask lacks `bit`."""
        half = _LANE_BYTES << bit
        pattern = b"\xff" * half + b"\x00" * half
        return int.from_bytes(pattern * (self._size >> (bit + 1)), "little")

"""Pieces in a form to calculate with: what a set of nodes weighs, and whether it is a member.

Separate from the values in the model, which are as compact as the wire: here every row of
weights has an entry for every node id, groups that cannot share are folded into the nodes, and
thresholds that every set reaches are gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from numalign.model.hint import Piece, Threshold
from numalign.model.numa_mask import MAX_NUMA_ID, NumaMask

Weights: TypeAlias = tuple[int, ...]
"""One weight for each node id from 0 to 63."""

Groups: TypeAlias = tuple[tuple[int, int], ...]
"""Masks of two or more nodes, each with the weight that counts once (section "Terms")."""

_PLACES = MAX_NUMA_ID + 1


@dataclass(frozen=True, slots=True)
class Row:
    """One threshold: a set of nodes has to weigh `need`; the whole ground weighs `total`."""

    need: int
    weights: Weights
    groups: Groups
    total: int

    def weigh(self, mask: int) -> int:
        """What the nodes of `mask` (within the ground) weigh."""
        weights = self.weights
        total = 0
        bits = mask
        while bits:
            low = bits & -bits
            total += weights[low.bit_length() - 1]
            bits ^= low
        for group, value in self.groups:
            if group & mask:
                total += value
        return total


@dataclass(frozen=True, slots=True)
class Compiled:
    """A piece that has members. `rows` are the thresholds that not every member meets anyway."""

    ground: int
    must: int
    rows: tuple[Row, ...]

    def holds(self, mask: int) -> bool:
        """Whether `mask` is a member."""
        return (
            mask != 0
            and not mask & ~self.ground
            and not self.must & ~mask
            and all(row.weigh(mask) >= row.need for row in self.rows)
        )


@lru_cache(maxsize=256)
def compiled(piece: Piece) -> Compiled | None:
    """`piece` to calculate with; None if it has no member."""
    if not piece.ground or piece.must & ~piece.ground:
        return None
    rows = []
    for threshold in piece.thresholds:
        row = _row(piece.ground, threshold)
        if row.total < row.need:
            return None
        if row.need > 0:
            rows.append(row)
    return Compiled(int(piece.ground), int(piece.must), tuple(rows))


def compiled_all(pieces: Iterable[Piece]) -> tuple[Compiled, ...]:
    """The pieces that have members."""
    return tuple(made for made in map(compiled, pieces) if made is not None)


def _row(ground: NumaMask, threshold: Threshold) -> Row:
    weights = [0] * _PLACES
    bits, given = int(ground), iter(threshold.weights)
    while bits:
        low = bits & -bits
        weights[low.bit_length() - 1] = next(given)
        bits ^= low
    groups: dict[int, int] = {}
    for mask, value in threshold.groups:
        inside = int(mask & ground)
        if not value or not inside:
            continue
        if inside & (inside - 1):
            groups[inside] = groups.get(inside, 0) + value
        else:
            weights[inside.bit_length() - 1] += value
    total = sum(weights) + sum(groups.values())
    return Row(threshold.need, tuple(weights), tuple(groups.items()), total)

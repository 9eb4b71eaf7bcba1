"""A few hints of a described list, the preferred ones first, for people to read.

A list may have more hints than there are atoms, so only as many are looked for as are named,
and the search gives up after a fixed number of steps: then it says that there are more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from numalign.families.expand import is_preferred, listing_order
from numalign.families.packing import each_node
from numalign.families.pieces import Compiled, compiled, compiled_all
from numalign.model.hint import FamilyList, HintList, TopologyHint
from numalign.model.numa_mask import NumaMask, narrowness

_MOST_STEPS = 5_000


@dataclass(frozen=True, slots=True)
class Choices:
    """Some hints of a list, narrowest first; `complete` if there are no others."""

    hints: tuple[TopologyHint, ...]
    complete: bool


def offers_mask(hints: HintList, mask: NumaMask) -> bool:
    """Whether one of `hints` is exactly `mask`."""
    if hints is None:
        return False
    if not isinstance(hints, FamilyList):
        return any(hint.mask == mask for hint in hints)
    return any(hint.mask == mask for hint in hints.explicit) or any(
        made.holds(mask) for piece in hints.pieces if (made := compiled(piece)) is not None
    )


def preferred_choices(family: FamilyList, most: int) -> Choices:
    """The preferred hints of `family`, at most `most`."""
    return _choices(family, most, preferred=True)


def some_choices(family: FamilyList, most: int) -> Choices:
    """Hints of `family`, preferred ones first, at most `most`."""
    first = _choices(family, most, preferred=True)
    if not first.complete:
        return first
    others = _choices(family, most - len(first.hints), preferred=False)
    return Choices((*first.hints, *others.hints), others.complete)


def _choices(family: FamilyList, most: int, *, preferred: bool) -> Choices:
    pieces = compiled_all(family.pieces)
    explicit: dict[NumaMask, bool] = {}
    nil: set[TopologyHint] = set()
    for hint in family.explicit:
        if hint.mask is None:
            nil.add(hint)
        else:
            explicit[hint.mask] = explicit.get(hint.mask, False) or hint.preferred
    found: set[NumaMask] = set()
    for mask, flag in explicit.items():
        member = any(piece.holds(mask) for piece in pieces)
        if (flag or (member and is_preferred(family, mask))) == preferred:
            found.add(mask)
    steps = _Steps()
    for size in range(1, max([piece.ground.bit_count() for piece in pieces], default=0) + 1):
        if preferred and family.sockets is None and size != family.preferred_count:
            continue
        for piece in pieces:
            for mask in _members(piece, size, steps):
                if explicit.get(mask) or is_preferred(family, mask) != preferred:
                    continue
                if len(found) > most:
                    break
                found.add(mask)
    ordered = sorted(found, key=narrowness if preferred else listing_order)
    hints = [hint for hint in nil if hint.preferred == preferred]
    hints += [TopologyHint(mask, preferred) for mask in ordered]
    complete = not steps.exhausted and len(hints) <= most
    return Choices(tuple(hints[:most]), complete)


class _Steps:
    def __init__(self) -> None:
        self._left = _MOST_STEPS

    @property
    def exhausted(self) -> bool:
        return self._left <= 0

    def step(self) -> bool:
        self._left -= 1
        return self._left > 0


def _members(piece: Compiled, size: int, steps: _Steps) -> Iterator[NumaMask]:
    """The members of one size, lexicographic; fewer where the steps run out."""
    nodes = list(each_node(piece.ground))
    tops = []
    for row in piece.rows:
        worth = [
            row.weights[node] + sum(value for group, value in row.groups if group >> node & 1)
            for node in nodes
        ]
        tops.append([sorted(worth[i:], reverse=True) for i in range(len(nodes) + 1)])

    def grow(start: int, mask: int, wanted: int) -> Iterator[NumaMask]:
        if not steps.step():
            return
        if not wanted:
            if piece.holds(mask):
                yield NumaMask(mask)
            return
        missing = piece.must & ~mask
        if missing.bit_count() > wanted or len(nodes) - start < wanted:
            return
        if any(
            row.weigh(mask) + sum(top[start][:wanted]) < row.need
            for row, top in zip(piece.rows, tops, strict=True)
        ):
            return
        for i in range(start, len(nodes) - wanted + 1):
            yield from grow(i + 1, mask | 1 << nodes[i], wanted - 1)
            if missing >> nodes[i] & 1:
                return

    yield from grow(0, 0, size)

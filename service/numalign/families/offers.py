"""One list of a merge in a form to merge by, whether it came listed, described or mixed.

Separate from the values of the model because here the absences of a list have got their
meaning (TM-20), and equal masks are told once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from numalign.families.counts import least_count
from numalign.families.expand import touches
from numalign.families.pieces import Compiled, compiled_all
from numalign.families.work import Work
from numalign.model.hint import FamilyList, SocketRule, TopologyHint


@dataclass(frozen=True, slots=True)
class Offer:
    """`explicit` masks with their flags, `pieces`, and whether a hint has no affinity.

    `open_preferred`: a preferred hint without affinity, so that the list binds no preferred
    result; `open_at_all`: one with either flag.
    """

    explicit: Mapping[int, bool] = field(default_factory=dict)
    pieces: tuple[Compiled, ...] = ()
    preferred_count: int | None = None
    sockets: SocketRule | None = None
    open_preferred: bool = False
    open_at_all: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing is offered."""
        return not (self.explicit or self.pieces or self.open_at_all)

    def prefers_size(self, mask: int) -> bool:
        """Whether a member of a piece that is `mask` is preferred."""
        if mask.bit_count() == self.preferred_count:
            return True
        return self.sockets is not None and touches(self.sockets, mask)

    def prefers(self, mask: int) -> bool:
        """Whether `mask` itself is among the preferred hints."""
        if self.explicit.get(mask):
            return True
        return self.prefers_size(mask) and any(piece.holds(mask) for piece in self.pieces)

    def fewest(self, work: Work) -> int | None:
        """The size of its smallest mask, None if it has none. Raises OutOfWork."""
        sizes = [mask.bit_count() for mask in self.explicit]
        sizes += [least_count(piece, work) for piece in self.pieces]
        return min(sizes, default=None)


def offer_of(hints: tuple[TopologyHint, ...] | FamilyList) -> Offer:
    """The offer of one normalised list; one of pieces without members cannot be placed."""
    family = hints if isinstance(hints, FamilyList) else FamilyList((), hints)
    explicit: dict[int, bool] = {}
    open_preferred = open_at_all = False
    for hint in family.explicit:
        if hint.mask is None:
            open_at_all = True
            open_preferred = open_preferred or hint.preferred
        else:
            explicit[hint.mask] = explicit.get(hint.mask, False) or hint.preferred
    pieces = compiled_all(family.pieces)
    if not explicit and not pieces:
        open_at_all = True
    return Offer(
        explicit=explicit,
        pieces=pieces,
        preferred_count=family.preferred_count,
        sockets=family.sockets,
        open_preferred=open_preferred,
        open_at_all=open_at_all,
    )

"""What a combination of one hint from each list can come to, without listing combinations.

A state (T, J) says that listed masks have cut the machine down to T, and that the pieces J may
still take nodes away from T. Lemma 7: the masks that can come out are the union over the states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numalign.families.offers import Offer
from numalign.families.oracle import Oracle
from numalign.families.packing import own_bin, packing
from numalign.families.pieces import Compiled
from numalign.families.work import Work


@dataclass(frozen=True, slots=True)
class State:
    """`target` is T; `pieces` are those of J, one for each list that listed no mask for it."""

    target: int
    pieces: tuple[Compiled, ...]

    def oracle(self, work: Work) -> Oracle:
        """The packing problem of what can remain of T (Lemma 5)."""
        bins = tuple(own_bin(piece, self.target) for piece in self.pieces)
        return Oracle(packing(self.target, bins), work)


def states(offers: Sequence[Offer], everywhere: int, work: Work) -> list[State]:
    """Every distinct state with nodes left. Raises OutOfWork where there are too many."""
    numbers: dict[Compiled, int] = {}
    for offer in offers:
        for piece in offer.pieces:
            numbers.setdefault(piece, len(numbers))
    pieces = list(numbers)
    reached: set[tuple[int, tuple[int, ...]]] = {(everywhere, ())}
    for offer in sorted(offers, key=lambda offer: len(offer.explicit)):
        if not offer.explicit and not offer.pieces:
            continue
        own = [(piece.ground, numbers[piece]) for piece in offer.pieces]
        following: set[tuple[int, tuple[int, ...]]] = set()
        for target, taking in reached:
            after = [(target & mask, taking) for mask in offer.explicit]
            after += [(target & ground, tuple(sorted((*taking, number)))) for ground, number in own]
            if offer.open_at_all:
                after.append((target, taking))
            for state in after:
                if state[0] and state not in following:
                    work.state()
                    following.add(state)
        reached = following
    return [
        State(target, tuple(pieces[number] for number in taking))
        for target, taking in sorted(reached)
    ]

"""The best result that is not preferred. Cases C-1 to C-4, after TM-28 and TM-29.

Wanted is B nodes: the most of what the lists ask for at the least. Failing that the largest
set below, and failing that the smallest above. Sizes never depend on distances.
"""

from __future__ import annotations

from collections.abc import Sequence

from numalign.families.counts import least_reached
from numalign.families.found import Best, Found, Ordering
from numalign.families.offers import Offer
from numalign.families.sized import best_of_size
from numalign.families.states import State, states
from numalign.families.work import OutOfWork, Work
from numalign.model.numa_mask import NumaMask


def non_preferred(
    offers: Sequence[Offer], everywhere: int, ordering: Ordering, work: Work
) -> Found | None:
    """The best mask that a combination comes to; None if none has a node left (TM-28).

    Raises OutOfWork where its size was not settled.
    """
    reached = states(offers, everywhere, work)
    if not reached:
        return None
    sizes = [size for offer in offers if (size := offer.fewest(work)) is not None]
    wanted = max(sizes, default=0)
    found = _of_wanted_size(reached, wanted, ordering, work)
    if found is not None:
        return found
    smaller = [state.target for state in reached if state.target.bit_count() < wanted]
    if smaller:
        # C-2, C-4: taking more nodes away would only lead further from B.
        size = max(map(int.bit_count, smaller))
        return Found(ordering({NumaMask(t) for t in smaller if t.bit_count() == size}))
    return _larger(reached, wanted, ordering, work)


def _of_wanted_size(
    reached: Sequence[State], wanted: int, ordering: Ordering, work: Work
) -> Found | None:
    """C-1 and C-3: the best of all sets of exactly `wanted` nodes."""
    if not wanted:
        return None
    exact = {NumaMask(s.target) for s in reached if s.target.bit_count() == wanted}
    best = Best(ordering)
    if exact:
        best.offer(Found(ordering(exact)))
    larger = [s for s in reached if s.pieces and s.target.bit_count() > wanted]
    larger.sort(key=lambda state: _lowest(state.target, wanted))
    unsettled = False
    for state in larger:
        if (
            ordering.distances is None
            and best.mask is not None
            and _lowest(state.target, wanted) >= best.mask
        ):
            break
        try:
            best.offer(best_of_size(state.oracle(work), wanted, best))
        except OutOfWork:
            unsettled = True
    if not unsettled:
        return best.found
    if best.mask is None:
        raise OutOfWork
    return Found(best.mask, proved=False)


def _larger(reached: Sequence[State], wanted: int, ordering: Ordering, work: Work) -> Found | None:
    """C-4: the smallest size above; only listed masks or mixed lists lead here (Lemma 8)."""
    oracles = [(state, state.oracle(work)) for state in reached]
    fewest = [
        least_reached(oracle, wanted + 1) if state.pieces else state.target.bit_count()
        for state, oracle in oracles
    ]
    size = min(fewest)
    best = Best(ordering)
    exact = {NumaMask(state.target) for state, _ in oracles if state.target.bit_count() == size}
    if exact:
        best.offer(Found(ordering(exact)))
    for (state, oracle), least in zip(oracles, fewest, strict=True):
        if least == size and state.target.bit_count() > size:
            best.offer(best_of_size(oracle, size, best))
    return best.found


def _lowest(mask: int, count: int) -> int:
    chosen = 0
    for _ in range(count):
        low = mask & -mask
        chosen |= low
        mask ^= low
    return chosen

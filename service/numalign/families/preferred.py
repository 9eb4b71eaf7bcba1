"""The preferred result of a merge: the best mask that every list prefers. Cases P-1 to P-5.

Lemma 3: such a mask is listed in some list (P-2), or comes from a piece in each (P-3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from numalign.families.found import Best, Found, Ordering
from numalign.families.offers import Offer
from numalign.families.packing import each_node
from numalign.families.pieces import Compiled
from numalign.families.sockets import search_joint
from numalign.families.work import OutOfWork, Work
from numalign.model.hint import SocketRule
from numalign.model.numa_mask import NumaMask


def preferred(
    offers: Sequence[Offer], everywhere: int, ordering: Ordering, work: Work
) -> Found | None:
    """The best mask that all offers prefer, cut to `everywhere`; None if there is none (TM-26).

    Raises OutOfWork where that was not settled.
    """
    binding = [offer for offer in offers if not offer.open_preferred]
    listed = _listed(binding or offers, binding)
    if not binding:
        listed.add(everywhere)
    sizes = sorted({mask.bit_count() for mask in (m & everywhere for m in listed) if mask})
    fewest = sizes[0] if sizes else None
    best = Best(ordering)
    masks = {NumaMask(mask & everywhere) for mask in listed}
    narrow = [mask for mask in masks if mask and mask.bit_count() == fewest]
    searches = _searches(binding or offers, everywhere, joint=bool(binding))
    for size, jobs in searches:
        if fewest is not None and size > fewest:
            break
        best = Best(ordering)
        singles: set[NumaMask] = set()
        if fewest == size:
            singles.update(narrow)
        if size == 1:
            # One node at a time: no search can be quicker.
            for pieces, ground, rules in jobs:
                singles.update(_single_nodes(pieces, ground, rules))
        if singles:
            best.offer(Found(ordering(singles)))
        settled = size == 1 or _search_all(jobs, size, best, work)
        if best.mask is not None:
            return Found(best.mask, best.proved and settled)
        if not settled:
            raise OutOfWork
    if narrow:
        return Found(ordering(narrow))
    return None


def _listed(offers: Iterable[Offer], binding: Sequence[Offer]) -> set[int]:
    """P-1, P-2: masks that some list states and prefers, and every binding list prefers."""
    return {
        mask
        for offer in offers
        for mask, flag in offer.explicit.items()
        if flag and all(other is offer or other.prefers(mask) for other in binding)
    }


_Job = tuple[tuple[Compiled, ...], int, tuple[SocketRule, ...]]
"""Pieces, where they all meet, and the socket rules that their common member must keep."""


def _searches(
    offers: Sequence[Offer], everywhere: int, *, joint: bool
) -> Iterator[tuple[int, list[_Job]]]:
    """P-3: the sizes to look at, ascending, each with what to search.

    With `joint`, for a mask that is in a piece of every offer; else for one of any.
    """
    groups = [tuple(offers)] if joint else [(offer,) for offer in offers]
    by_size: dict[int, list[_Job]] = {}
    for group in groups:
        for choice in product(*(offer.pieces for offer in group)):
            pieces = tuple(dict.fromkeys(choice))
            ground = everywhere
            for piece in pieces:
                ground &= piece.ground
            if not ground:
                continue
            for size in _common_sizes(group, ground.bit_count()):
                rules = tuple(
                    dict.fromkeys(
                        offer.sockets
                        for offer in group
                        if offer.sockets is not None and offer.preferred_count != size
                    )
                )
                by_size.setdefault(size, []).append((pieces, ground, rules))
    yield from sorted(by_size.items())


def _common_sizes(offers: Sequence[Offer], largest: int) -> Iterable[int]:
    """The sizes at which a member can be preferred by all."""
    stated = {offer.preferred_count for offer in offers if offer.sockets is None}
    if not stated:
        return range(1, largest + 1)
    if len(stated) > 1:
        return ()
    (size,) = stated
    return () if size is None or not 1 <= size <= largest else (size,)


def _search_all(jobs: Sequence[_Job], size: int, best: Best, work: Work) -> bool:
    """Offer `best` what all `jobs` find; whether every one of them came to its end."""
    settled = True
    for pieces, ground, rules in jobs:
        try:
            search_joint(pieces, ground, size, rules, best, work)
        except OutOfWork:
            settled = False
    return settled


def _single_nodes(
    pieces: Sequence[Compiled], ground: int, rules: Sequence[SocketRule]
) -> Iterator[NumaMask]:
    for node in each_node(ground):
        mask = 1 << node
        if all(piece.holds(mask) for piece in pieces) and all(
            sum(1 for members in rule.members if members & mask) == rule.touched for rule in rules
        ):
            yield NumaMask(mask)

"""The merge: from one list of hints per resource to the one best hint.

The merge is defined over every combination of one hint from each list (TM-21..TM-25). That
product has billions of members on a large machine, so the closed form is computed instead
(TM-26..TM-30); it gives the same answer whatever the order of lists and hints.

Two facts carry it:

- A preferred result needs equal masks, so it is a mask that all lists prefer: set operations.
- A non-preferred result is one of the masks that some combination intersects to, and its
  rank depends on the mask alone: see `intersections`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from numalign.errors import FieldViolation, InvalidInput
from numalign.families.expand import expand
from numalign.families.merge import Merged, merge_offers
from numalign.families.offers import offer_of
from numalign.families.work import Work
from numalign.model.hint import FamilyList, TopologyHint
from numalign.model.numa_mask import NumaMask, nodes_of
from numalign.topology.intersections import intersections
from numalign.topology.normalise import NOWHERE, StatedList
from numalign.topology.numa_info import Fitter

FEW_NODES = 8
"""Up to this many NUMA nodes described lists are written out: all masks are few."""


def merge_stated(lists: Sequence[StatedList], default_mask: NumaMask, fitter: Fitter) -> Merged:
    """The best hint for lists that may be described, its mask as in `merge`.

    Raises Undecided where described lists are too hard, and what `fitter` raises.
    """
    described = [one for one in lists if isinstance(one, FamilyList)]
    if not described:
        return Merged(merge(listed(lists), default_mask, fitter))
    check_grounds(described, default_mask)
    if default_mask.bit_count() <= FEW_NODES:
        return Merged(merge(listed(lists), default_mask, fitter))
    return merge_offers([offer_of(one) for one in lists], default_mask, fitter, Work())


def listed(lists: Sequence[StatedList]) -> list[tuple[TopologyHint, ...]]:
    """The lists with those that are described written out."""
    return [(expand(one) or NOWHERE) if isinstance(one, FamilyList) else one for one in lists]


def check_grounds(described: Iterable[FamilyList], default_mask: NumaMask) -> None:
    """Raise InvalidInput for a piece that is not within the machine's NUMA nodes."""
    for family in described:
        for piece in family.pieces:
            if piece.ground & ~default_mask:
                raise InvalidInput(
                    FieldViolation(
                        "pieces.ground",
                        f"nodes {list(nodes_of(NumaMask(piece.ground & ~default_mask)))} are "
                        "not NUMA nodes of the machine",
                    )
                )


def merge(
    lists: Sequence[Collection[TopologyHint]], default_mask: NumaMask, fitter: Fitter
) -> TopologyHint:
    """The best hint for `lists`, whose mask is never None and lies within `default_mask`.

    `default_mask` holds every NUMA node; `fitter` decides between equally good masks.
    Raises what `fitter` raises.
    """
    preferred = _preferred_candidates(lists, default_mask)
    if preferred:
        return TopologyHint(fitter(preferred), True)
    best = _best_non_preferred(lists, default_mask, fitter)
    return TopologyHint(default_mask if best is None else best, False)


def _preferred_candidates(
    lists: Sequence[Collection[TopologyHint]], default_mask: NumaMask
) -> set[NumaMask]:
    """The masks that every list prefers or leaves open, within `default_mask` (TM-26).

    Masks are compared before they are cut to `default_mask`.
    """
    common: set[NumaMask] | None = None
    open_masks: set[NumaMask] = set()
    for hints in lists:
        wanted = {hint.mask for hint in hints if hint.preferred}
        leaves_open = None in wanted
        masks = {mask for mask in wanted if mask is not None}
        if leaves_open:
            open_masks |= masks
        else:
            common = masks if common is None else common & masks
            if not common:
                return set()
    if common is None:
        candidates = {NumaMask(mask & default_mask) for mask in open_masks}
        candidates.add(default_mask)
    else:
        candidates = {NumaMask(mask & default_mask) for mask in common}
    candidates.discard(NumaMask(0))
    return candidates


def _best_non_preferred(
    lists: Sequence[Collection[TopologyHint]], default_mask: NumaMask, fitter: Fitter
) -> NumaMask | None:
    """The best mask that a combination intersects to, None if there is none (TM-28, TM-29)."""
    wanted_count = 0
    reachable: list[set[NumaMask]] = []
    for hints in lists:
        if not hints:
            return None
        stated = {hint.mask for hint in hints}
        masks = {mask for mask in stated if mask is not None}
        if masks:
            wanted_count = max(wanted_count, min(map(int.bit_count, masks)))
        if len(masks) < len(stated):
            masks.add(default_mask)
        reachable.append(masks)
    results = intersections(reachable, default_mask)
    if not results:
        return None
    count = _best_count({mask.bit_count() for mask in results}, wanted_count)
    return fitter([mask for mask in results if mask.bit_count() == count])


def _best_count(counts: Collection[int], wanted: int) -> int:
    """`wanted` itself, else the largest count below it, else the smallest above (TM-29)."""
    return max((count for count in counts if count <= wanted), default=min(counts))

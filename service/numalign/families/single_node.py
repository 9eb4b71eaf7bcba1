"""The merge of policy `single-numa-node`: every list keeps preferred hints of one node, or none.

Separate because no search is needed: there are as many candidates as nodes. Rules TM-36, TM-37.
"""

from __future__ import annotations

from collections.abc import Iterable

from numalign.families.offers import Offer
from numalign.model.hint import TopologyHint
from numalign.model.numa_mask import NumaMask


def kept_hints(offer: Offer, everywhere: int) -> list[TopologyHint]:
    """The preferred hints of `offer` without affinity, and on single nodes."""
    masks = {mask for mask, flag in offer.explicit.items() if flag and mask.bit_count() == 1}
    masks.update(_single_members(offer, everywhere))
    kept = [TopologyHint(NumaMask(mask), True) for mask in sorted(masks)]
    if offer.open_preferred:
        kept.append(TopologyHint(None, True))
    return kept


def _single_members(offer: Offer, everywhere: int) -> Iterable[int]:
    if offer.preferred_count != 1 and offer.sockets is None:
        return
    bits = everywhere
    while bits:
        mask = bits & -bits
        bits ^= mask
        if offer.prefers_size(mask) and any(piece.holds(mask) for piece in offer.pieces):
            yield mask

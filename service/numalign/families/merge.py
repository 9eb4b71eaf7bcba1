"""The merge of lists that are described, listed or mixed, for up to 64 nodes.

The course of it: the preferred result, else the best that is not preferred, else all nodes.
Which class, which size and whether it is preferred are always exact; where the work ran out
before the best set of that size was proved to be the best, the result says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numalign.errors import Undecided
from numalign.families.found import Found, Ordering
from numalign.families.non_preferred import non_preferred
from numalign.families.offers import Offer
from numalign.families.preferred import preferred
from numalign.families.work import OutOfWork, Work
from numalign.model.hint import TopologyHint
from numalign.model.numa_mask import NumaMask


@dataclass(frozen=True, slots=True)
class Merged:
    """The best hint. Not `proved`: a better mask of the same size was not excluded."""

    best: TopologyHint
    proved: bool = True


def merge_offers(
    offers: Sequence[Offer], everywhere: NumaMask, ordering: Ordering, work: Work
) -> Merged:
    """The best hint for `offers` on a machine with the nodes of `everywhere`.

    Raises Undecided where it was not settled whether a preferred result exists or how many
    nodes the best other has, and what `ordering` raises.
    """
    try:
        found = preferred(offers, everywhere, ordering, work)
        if found is not None:
            return _merged(found, is_preferred=True)
        found = non_preferred(offers, everywhere, ordering, work)
    except OutOfWork as stopped:
        raise Undecided(
            f"topology merge not decided within {work.limit} steps: {len(offers)} resources, "
            f"{everywhere.bit_count()} NUMA nodes"
        ) from stopped
    if found is None:
        return Merged(TopologyHint(everywhere, False))
    return _merged(found, is_preferred=False)


def _merged(found: Found, *, is_preferred: bool) -> Merged:
    return Merged(TopologyHint(NumaMask(found.mask), is_preferred), found.proved)

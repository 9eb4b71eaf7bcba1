"""The best hint of a single described list: preferred before others, then narrowest.

For a provider that has to choose by itself. Separate from the merge, which has several lists,
ranks hints that are not preferred differently and knows distances.
"""

from __future__ import annotations

from dataclasses import replace

from numalign.errors import Undecided
from numalign.families.counts import least_count
from numalign.families.expand import is_preferred
from numalign.families.narrowest import least
from numalign.families.oracle import Oracle
from numalign.families.packing import joint_bin, packing
from numalign.families.pieces import Compiled, compiled_all
from numalign.families.work import OutOfWork, Work
from numalign.model.hint import FamilyList, TopologyHint
from numalign.model.numa_mask import EMPTY, NumaMask, narrowness


def best_described(family: FamilyList, containing: NumaMask = EMPTY) -> TopologyHint | None:
    """The best hint of `family` whose mask has all nodes of `containing`; None if there is none.

    A preferred hint before others, then the narrower one; hints without affinity are passed
    over. Raises Undecided where that takes too long to find out.
    """
    found = {
        hint.mask: hint.preferred
        for hint in sorted(family.explicit, key=_is_preferred)
        if hint.mask is not None and not containing & ~hint.mask
    }
    try:
        for piece in compiled_all(family.pieces):
            for mask in _candidates(family, piece, containing):
                found[mask] = found.get(mask, False) or is_preferred(family, mask)
    except OutOfWork as stopped:
        raise Undecided("the best of many sets of NUMA nodes was not found in time") from stopped
    hints = [TopologyHint(mask, preferred) for mask, preferred in found.items()]
    return min(hints, key=_rank, default=None)


def _candidates(family: FamilyList, piece: Compiled, containing: NumaMask) -> list[NumaMask]:
    """The narrowest member that contains the nodes, and that of the preferred size."""
    if containing & ~piece.ground:
        return []
    wanted = replace(piece, must=piece.must | containing)
    work = Work()
    sizes = {least_count(wanted, work)}
    if family.preferred_count is not None and family.preferred_count > min(sizes):
        sizes.add(family.preferred_count)
    return [mask for size in sizes if (mask := _least_of_size(wanted, size, work)) is not None]


def _least_of_size(piece: Compiled, size: int, work: Work) -> NumaMask | None:
    only = joint_bin((piece,), piece.ground)
    taken = piece.ground.bit_count() - size
    if only is None or taken < 0:
        return None
    found = least(Oracle(packing(piece.ground, (only,)), work), (piece.ground,), (taken,))
    if found is None:
        return None
    if not found.proved:
        raise OutOfWork
    return NumaMask(found.mask)


def _is_preferred(hint: TopologyHint) -> bool:
    return hint.preferred


def _rank(hint: TopologyHint) -> tuple[bool, tuple[int, int]]:
    return (not hint.preferred, narrowness(hint.mask or EMPTY))

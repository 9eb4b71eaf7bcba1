"""The best set of a given size that a packing leaves, in the order in force.

Separate from the two searches because who needs a set does not care how sets compare.
"""

from __future__ import annotations

from numalign.families.closest import closest
from numalign.families.found import Best, Found
from numalign.families.narrowest import least
from numalign.families.oracle import Oracle


def best_of_size(oracle: Oracle, size: int, best: Best) -> Found | None:
    """The best set of `size` nodes that can remain; None if none is better than `best`.

    Raises OutOfWork where not even that there is one could be settled.
    """
    target = oracle.packing.target
    taken = target.bit_count() - size
    if taken < 0 or size < 1:
        return None
    if not taken:
        return Found(target)
    distances = best.ordering.distances
    if distances is not None:
        return closest(oracle, size, distances, best.mask)
    found = least(oracle, (target,), (taken,), below=best.mask)
    return None if found is None else Found(found.mask, found.proved)

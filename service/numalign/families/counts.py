"""How few nodes: the least size of a piece, of several at once, and of what a state can reach.

Feasibility is monotone in the size (Lemmas 1 and 6), so sizes are found by bisection with the
oracle, and by a sort where a piece has one plain threshold. Section "Least count".
"""

from __future__ import annotations

from numalign.errors import Undecided
from numalign.families.oracle import Oracle
from numalign.families.packing import joint_bin, packing
from numalign.families.pieces import Compiled, compiled
from numalign.families.work import OutOfWork, Work
from numalign.model.hint import Piece


def least_count(piece: Compiled, work: Work) -> int:
    """The size of the smallest members of `piece`. Raises OutOfWork."""
    if not piece.rows:
        return max(piece.must.bit_count(), 1)
    if len(piece.rows) == 1 and not piece.rows[0].groups:
        return _by_sort(piece)
    only = joint_bin((piece,), piece.ground)
    if only is None:
        raise AssertionError("a compiled piece has members")
    return least_reached(Oracle(packing(piece.ground, (only,)), work), 1)


def fewest_nodes(piece: Piece) -> int | None:
    """The size of the smallest members of `piece`, None if it has none.

    Raises Undecided where that takes too long to find out.
    """
    made = compiled(piece)
    if made is None:
        return None
    try:
        return least_count(made, Work())
    except OutOfWork as stopped:
        raise Undecided("the fewest NUMA nodes for a request were not found in time") from stopped


def least_reached(oracle: Oracle, at_least: int) -> int:
    """The least size of `at_least` or more that can remain. Raises OutOfWork."""
    target = oracle.packing.target
    size = target.bit_count()
    low, high = max(at_least, 1), size
    while low < high:
        middle = (low + high) // 2
        if oracle.solve(0, target, (target,), (size - middle,)) is not None:
            high = middle
        else:
            low = middle + 1
    return high


def _by_sort(piece: Compiled) -> int:
    row = piece.rows[0]
    missing = row.need - row.weigh(piece.must)
    count = piece.must.bit_count()
    rest = piece.ground & ~piece.must
    heaviest = sorted(
        [weight for node, weight in enumerate(row.weights) if rest >> node & 1], reverse=True
    )
    for weight in heaviest:
        if missing <= 0:
            break
        missing -= weight
        count += 1
    return max(count, 1)

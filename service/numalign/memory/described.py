"""Hints on machines with many NUMA nodes: the masks of the enumeration, described.

What the rules ask of a mask is a sum over its nodes unless a node of it has assignments; then it
must be that node alone or its whole group. So there is one piece over the unassigned nodes, and
a short list of masks that are looked at one by one (F-3).
"""

from __future__ import annotations

from collections.abc import Iterator

from numalign.families.pieces import compiled
from numalign.memory.columns import Columns, ResourceColumn, minimum_nodes
from numalign.memory.machine_state import UINT64, Reusable
from numalign.model.hint import FamilyList, Piece, Threshold, TopologyHint
from numalign.model.numa_mask import NumaMask, mask_of, narrowness


def adds_up(columns: Columns) -> bool:
    """Whether no sum over nodes wraps around, so that more nodes never have less (MEM-15)."""
    return all(
        sum(column.free) <= UINT64 and sum(column.allocatable) <= UINT64
        for column in columns.resources
    )


def described_hints(columns: Columns, reusable: Reusable) -> FamilyList | None:
    """Every mask that can hold the request now (MEM-26, MEM-27); None if none can.

    The amounts must add up. Raises Undecided where the preferred size is too hard to find.
    """
    minimum = minimum_nodes(columns)
    if minimum is None:
        # Not even all nodes could hold the request if they were empty.
        return None
    piece = _unassigned(columns)
    members = compiled(piece)
    explicit = tuple(
        TopologyHint(mask, mask.bit_count() == minimum)
        for mask in sorted(_candidates(columns, reusable), key=narrowness)
        if (members is None or not members.holds(mask)) and _can_hold(columns, reusable, mask)
    )
    if members is None and not explicit:
        return None
    return FamilyList(
        pieces=() if members is None else (piece,), explicit=explicit, preferred_count=minimum
    )


def _unassigned(columns: Columns) -> Piece:
    """The masks without an assigned node, of which only the sums matter.

    Should an unassigned node be in a group, it is not to be had alone; then single nodes are
    looked at one by one, and the piece is of two nodes or more.
    """
    chosen = [i for i, node in enumerate(columns.nodes) if not columns.assigned >> node & 1]
    thresholds = [t for column in columns.resources for t in _enough(column, chosen)]
    if columns.grouped & ~columns.assigned:
        thresholds.append(Threshold(2, (1,) * len(chosen)))
    return Piece(mask_of(columns.nodes[i] for i in chosen), thresholds=tuple(thresholds))


def _enough(column: ResourceColumn, chosen: list[int]) -> Iterator[Threshold]:
    free = tuple([column.free[i] for i in chosen])
    allocatable = tuple([column.allocatable[i] for i in chosen])
    yield Threshold(column.requested, free)
    if any(now > empty for now, empty in zip(free, allocatable, strict=True)):
        yield Threshold(column.requested, allocatable)


def _candidates(columns: Columns, reusable: Reusable) -> set[NumaMask]:
    """The masks that the piece may not tell of: single nodes, whole groups, and reused masks."""
    everywhere = mask_of(columns.nodes)
    masks = {mask for mask, _ in reusable if not mask & ~everywhere}
    masks |= columns.whole_groups()
    unlike = columns.assigned | columns.grouped
    masks |= {mask_of((node,)) for node in columns.nodes if unlike >> node & 1}
    if columns.grouped & ~columns.assigned:
        masks |= {mask_of((node,)) for node in columns.nodes}
    return masks


def _can_hold(columns: Columns, reusable: Reusable, mask: NumaMask) -> bool:
    """Steps 1 and 3 to 5 of MEM-26 for one mask."""
    if mask & (mask - 1):
        if mask & columns.assigned and not columns.is_whole_group(mask):
            return False
    elif mask & columns.grouped:
        return False
    at = [i for i, node in enumerate(columns.nodes) if mask >> node & 1]
    return all(
        sum([column.allocatable[i] for i in at]) >= column.requested
        and sum([column.free[i] for i in at]) + reusable.get((mask, column.resource), 0)
        >= column.requested
        for column in columns.resources
    )

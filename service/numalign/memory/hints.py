"""Hints: which sets of NUMA nodes could hold a request, and which of them are preferred.

Every mask is looked at, smallest first, in columns of plain integers: the sums over all masks
come from doubling a list, so eight nodes take some tens of microseconds. The work doubles with
each node; beyond `MOST_LISTED_NODES` the masks are described instead (see described).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from numalign.families.best import best_described
from numalign.memory.columns import Columns, columns_of, require_tables
from numalign.memory.described import adds_up, described_hints
from numalign.memory.eligibility import Request
from numalign.memory.faults import MemoryFault
from numalign.memory.machine_state import UINT64, MachineState, Reusable
from numalign.model.hint import FamilyList, HintList, ProviderHints, TopologyHint
from numalign.model.ids import NumaId
from numalign.model.numa_mask import EMPTY, MAX_NUMA_ID, NumaMask, mask_of, narrowness, subsets
from numalign.provider.values import MemoryBlock

MOST_LISTED_NODES = 8
"""On machines with more NUMA nodes the masks are described, not listed."""

MOST_NODES = 16
"""Machines with more NUMA nodes have too many masks to list even where amounts do not add up."""

_Masks: TypeAlias = Sequence[tuple[int, NumaMask]]
"""Masks in order of enumeration: by position among the nodes, and by node id."""

_NOTHING: Mapping[NumaMask, int] = {}

_hint = lru_cache(maxsize=4096)(TopologyHint)


def compute_hints(machine: MachineState, request: Request, reusable: Reusable) -> ProviderHints:
    """Hints for `request`, the same list for every requested resource (MEM-26..MEM-28).

    An empty mapping, not an empty list, where no mask can hold it. Raises MemoryFault where a
    node lacks a table for a requested resource (MEM-29), or where there are too many nodes for
    amounts that wrap around (MEM-15).
    """
    require_tables(machine, request)
    columns = columns_of(machine, request)
    if len(columns.nodes) > MOST_LISTED_NODES and adds_up(columns):
        family = described_hints(columns, reusable)
        return {} if family is None else dict.fromkeys(request, family)
    hints = fitting_hints(columns, reusable)
    if not hints:
        return {}
    return dict.fromkeys(request, hints)


def fitting_hints(columns: Columns, reusable: Reusable) -> tuple[TopologyHint, ...]:
    """Every mask that can hold the request now, in order of enumeration (MEM-26, MEM-27)."""
    if len(columns.nodes) > MOST_NODES:
        raise MemoryFault(
            f"{len(columns.nodes)} NUMA nodes have too many masks to list (at most {MOST_NODES})"
        )
    masks: _Masks = _enumeration(columns.nodes)
    for column in columns.resources:
        masks = _with_enough(masks, column.allocatable, column.requested)
    minimum = masks[0][1].bit_count() if masks else len(columns.nodes)
    masks = _without_broken_groups(masks, columns)
    for column in columns.resources:
        reused = {mask: left for (mask, of), left in reusable.items() if of == column.resource}
        masks = _with_enough(masks, column.free, column.requested, reused)
    return tuple([_hint(mask, mask.bit_count() == minimum) for _, mask in masks])


def best_hint(hints: HintList, containing: NumaMask = EMPTY) -> TopologyHint | None:
    """The preferred hint before others, then the narrowest (MEM-37).

    Only hints with all nodes of `containing` count; None where there is none. Raises Undecided
    where described hints are too hard to choose from.
    """
    if isinstance(hints, FamilyList):
        return best_described(hints, containing)
    best: TopologyHint | None = None
    for hint in hints or ():
        if hint.mask is not None and containing & ~hint.mask:
            continue
        if best is None or _rank(hint) < _rank(best):
            best = hint
    return best


def regenerate_hints(blocks: Sequence[MemoryBlock], request: Request) -> ProviderHints:
    """Hints that repeat an existing allocation; None where the request has changed (MEM-30)."""
    if len(blocks) != len(request):
        return None
    hints: dict[str, tuple[TopologyHint, ...]] = {}
    for block in blocks:
        if request.get(block.resource) != block.size:
            return None
        if not all(0 <= node <= MAX_NUMA_ID for node in block.numa_nodes):
            return None
        repeated = TopologyHint(mask_of(block.numa_nodes), True)
        hints[block.resource] = (*hints.get(block.resource, ()), repeated)
    return hints


def _rank(hint: TopologyHint) -> tuple[bool, tuple[int, int]]:
    """Ascending from the best; computed hints always have a mask."""
    return (not hint.preferred, (0, 0) if hint.mask is None else narrowness(hint.mask))


def _with_enough(
    masks: _Masks,
    column: Sequence[int],
    requested: int,
    reused: Mapping[NumaMask, int] = _NOTHING,
) -> _Masks:
    """Keep the masks over which the column, with what can be reused, adds up to the request."""
    if not reused and min(column) >= requested and sum(column) <= UINT64:
        # Every single node has enough, and no sum wraps around.
        return masks
    sums = _sums_by_position(column)
    if not reused:
        return [entry for entry in masks if sums[entry[0]] >= requested]
    return [
        entry for entry in masks if sums[entry[0]] + reused.get(entry[1], 0) & UINT64 >= requested
    ]


def _without_broken_groups(masks: _Masks, columns: Columns) -> _Masks:
    """Leave out single nodes of a group, and masks that would tear or join groups."""
    assigned, grouped = columns.assigned, columns.grouped
    if not assigned and not grouped:
        return masks
    whole = columns.whole_groups()
    return [
        entry
        for entry in masks
        if (
            not entry[1] & assigned or entry[1] in whole
            if entry[1] & (entry[1] - 1)
            else not entry[1] & grouped
        )
    ]


def _sums_by_position(column: Sequence[int]) -> list[int]:
    """Sums over every subset: bit i of the index stands for the i-th node of the column."""
    sums = [0]
    for amount in column:
        sums += [total + amount & UINT64 for total in sums]
    return sums


@lru_cache(maxsize=4)
def _enumeration(nodes: tuple[NumaId, ...]) -> tuple[tuple[int, NumaMask], ...]:
    """All masks by size, then lexicographically (MEM-26)."""
    return tuple(zip(subsets(range(len(nodes))), subsets(nodes), strict=True))

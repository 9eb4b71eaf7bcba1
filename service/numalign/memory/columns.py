"""The machine as one request sees it: plain columns of numbers, one entry per NUMA node.

What hints are made of, whether by listing masks (hints) or, on machines with many NUMA nodes,
by describing the set of masks: free and allocatable bytes, assigned nodes, groups, and the
least number of nodes that could hold the request on an empty machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from numalign.families.counts import fewest_nodes
from numalign.memory.eligibility import Request
from numalign.memory.faults import missing_table
from numalign.memory.machine_state import NO_TABLE, MachineState
from numalign.model.hint import Piece, Threshold
from numalign.model.ids import NumaId
from numalign.model.numa_mask import EMPTY, NumaMask, mask_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceColumn:
    """One requested resource: bytes asked for, and bytes per node in the order of `nodes`."""

    resource: str
    requested: int
    allocatable: tuple[int, ...]
    free: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Everything hints depend on, but for reusable memory.

    `nodes` ascend. `assigned` are the nodes with at least one assignment, `grouped` those whose
    group has more than one member; `cells` is the group of each node, in the order of `nodes`.
    """

    nodes: tuple[NumaId, ...]
    assigned: NumaMask
    grouped: NumaMask
    cells: tuple[NumaMask, ...]
    resources: tuple[ResourceColumn, ...]

    def whole_groups(self) -> frozenset[NumaMask]:
        """Masks of several nodes that hold assignments and may yet be used, as a whole (MEM-26).

        Every assigned node of such a mask has the mask itself for its group.
        """
        candidates = {
            cells
            for node, cells in zip(self.nodes, self.cells, strict=True)
            if self.assigned >> node & 1 and cells & (cells - 1)
        }
        return frozenset(mask for mask in candidates if self.is_whole_group(mask))

    def is_whole_group(self, mask: NumaMask) -> bool:
        """Whether no assigned node of `mask` (several nodes) belongs to another group."""
        return all(
            cells == mask
            for node, cells in zip(self.nodes, self.cells, strict=True)
            if mask & self.assigned & 1 << node
        )


def require_tables(machine: MachineState, request: Request) -> None:
    """Raise MemoryFault where a node has no table for a requested resource (MEM-29)."""
    for node, memory in machine.items():
        for resource in request:
            if resource not in memory.tables:
                raise missing_table(resource, node)


def columns_of(machine: MachineState, request: Request) -> Columns:
    """The columns that decide `request` on `machine`; a table that is missing counts as empty."""
    assigned = grouped = EMPTY
    cells: list[NumaMask] = []
    for node, memory in machine.items():
        if memory.assignments > 0:
            assigned = NumaMask(assigned | 1 << node)
        if len(memory.cells) > 1:
            grouped = NumaMask(grouped | 1 << node)
        cells.append(mask_of(memory.cells))
    return Columns(
        nodes=tuple(machine),
        assigned=assigned,
        grouped=grouped,
        cells=tuple(cells),
        resources=tuple(_column(machine, resource, amount) for resource, amount in request.items()),
    )


def minimum_nodes(columns: Columns) -> int | None:
    """The least number of nodes whose allocatable bytes hold every request; None if none do.

    Exact for any number of nodes and resources without listing masks. Hints compare with the
    same number, or with the number of all nodes if none do. Raises Undecided where it takes too
    long to find.
    """
    enough = tuple([Threshold(c.requested, c.allocatable) for c in columns.resources])
    return fewest_nodes(Piece(mask_of(columns.nodes), thresholds=enough))


def _column(machine: MachineState, resource: str, requested: int) -> ResourceColumn:
    tables = [memory.tables.get(resource, NO_TABLE) for memory in machine.values()]
    return ResourceColumn(
        resource=resource,
        requested=requested,
        allocatable=tuple(table.allocatable for table in tables),
        free=tuple(table.free for table in tables),
    )

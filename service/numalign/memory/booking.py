"""Moving bytes between free and reserved: booking blocks, and giving them back.

The only place where the books of the machine change. Each function returns new books.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from numalign.memory.eligibility import Request
from numalign.memory.faults import missing_node, missing_table
from numalign.memory.machine_state import UINT64, MachineState, NodeMemory, Reusable, Table
from numalign.model.ids import NumaId
from numalign.model.numa_mask import NumaMask, nodes_of
from numalign.provider.values import MemoryBlock


def free_on(machine: MachineState, mask: NumaMask, resource: str) -> int:
    """Free bytes of `resource` over `mask`; raises MemoryFault for a table that is missing."""
    return sum(_table(machine, node, resource).free for node in _node_ids(mask)) & UINT64


def make_blocks(mask: NumaMask, request: Request) -> tuple[MemoryBlock, ...]:
    """One block per requested resource, of its full size, over `mask` (MEM-38, MEM-39)."""
    nodes = _node_ids(mask)
    return tuple(
        MemoryBlock(numa_nodes=nodes, resource=resource, size=amount)
        for resource, amount in request.items()
    )


def book(
    machine: MachineState, blocks: Iterable[MemoryBlock], reusable: Reusable, mask: NumaMask
) -> MachineState:
    """Book `blocks`, all over `mask`, less what can be reused (MEM-38)."""
    books = dict(machine)
    for block in blocks:
        covered = reusable.get((mask, block.resource), 0)
        fill(books, block, max(0, block.size - covered))
    return books


def fill(books: dict[NumaId, NodeMemory], block: MemoryBlock, amount: int) -> None:
    """Count one assignment of `block` in `books`, and reserve `amount` bytes for it.

    Nodes are filled in the order of the block, each completely before the next; what finds no
    room is not reserved. Raises MemoryFault for a node or table that is missing.
    """
    remaining = amount
    for node in block.numa_nodes:
        table = _table(books, node, block.resource)
        moved = min(table.free, remaining)
        books[node] = _with_table(
            books[node],
            assignments=books[node].assignments + 1,
            cells=block.numa_nodes,
            resource=block.resource,
            table=_move(table, moved),
        )
        remaining -= moved


def release(machine: MachineState, blocks: Iterable[MemoryBlock]) -> MachineState:
    """Give `blocks` back, in node order and not by origin (MEM-47, MEM-48, MEM-T17)."""
    books = dict(machine)
    for block in blocks:
        remaining = block.size
        for node in block.numa_nodes:
            table = _table(books, node, block.resource)
            memory = books[node]
            left = memory.assignments - 1
            moved = min(table.reserved, remaining)
            books[node] = _with_table(
                memory,
                assignments=left,
                cells=(node,) if left == 0 else memory.cells,
                resource=block.resource,
                table=_move(table, -moved),
            )
            remaining -= moved
    return books


def _node_ids(mask: NumaMask) -> tuple[NumaId, ...]:
    return tuple(NumaId(node) for node in nodes_of(mask))


def _table(machine: Mapping[NumaId, NodeMemory], node: NumaId, resource: str) -> Table:
    memory = machine.get(node)
    if memory is None:
        raise missing_node(node)
    table = memory.tables.get(resource)
    if table is None:
        raise missing_table(resource, node)
    return table


def _move(table: Table, amount: int) -> Table:
    """`table` with `amount` bytes (may be negative) moved from free to reserved."""
    if amount == 0:
        return table
    return replace(
        table, reserved=table.reserved + amount & UINT64, free=table.free - amount & UINT64
    )


def _with_table(
    memory: NodeMemory, *, assignments: int, cells: tuple[NumaId, ...], resource: str, table: Table
) -> NodeMemory:
    tables = memory.tables
    if tables[resource] is not table:
        tables = {**tables, resource: table}
    return NodeMemory(assignments=assignments, cells=cells, tables=tables)

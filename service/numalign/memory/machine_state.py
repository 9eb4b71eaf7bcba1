"""The books of the machine: per NUMA node and memory resource, what there is and what is free.

Values only; who may change them is decided in booking. All amounts are unsigned 64-bit bytes
and wrap as the kubelet's do (MEM-15, MEM-T10).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from numalign.model.ids import NumaId
from numalign.model.machine import Machine
from numalign.model.numa_mask import NumaMask
from numalign.model.quantity import Format, Quantity
from numalign.provider.values import MemoryBlock

MEMORY = "memory"
HUGE_PAGES_PREFIX = "hugepages-"
UINT64 = (1 << 64) - 1
"""Adding and subtracting amounts is done modulo this plus one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One memory resource on one NUMA node, in bytes."""

    total: int
    system_reserved: int
    allocatable: int
    reserved: int
    free: int


NO_TABLE = Table(total=0, system_reserved=0, allocatable=0, reserved=0, free=0)
"""Stands for a table that a NUMA node does not have, where that may be shown as nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMemory:
    """One NUMA node: bookings that name it, the group it belongs to, a table per resource.

    `cells` holds the node's own id while it is alone. `assignments` counts (block, node)
    pairs, blocks of size 0 included.
    """

    assignments: int
    cells: tuple[NumaId, ...]
    tables: Mapping[str, Table]


MachineState: TypeAlias = Mapping[NumaId, NodeMemory]
"""Every NUMA node of the machine, by ascending id; never changed in place (MEM-16)."""

ReservedTables: TypeAlias = Mapping[NumaId, Mapping[str, int]]
"""System-reserved bytes per NUMA node and resource (MEM-12)."""

Reusable: TypeAlias = Mapping[tuple[NumaMask, str], int]
"""Bytes that finished init containers of the pod left, by exact mask and resource (MEM-43)."""


def is_managed(resource: str) -> bool:
    """Whether the memory provider looks after `resource`."""
    return resource == MEMORY or resource.startswith(HUGE_PAGES_PREFIX)


def huge_page_resource(page_size_kib: int) -> str:
    """The resource name of a huge page size: 2048 gives `hugepages-2Mi` (MEM-14)."""
    size = Quantity.from_int(page_size_kib * 1024, Format.BINARY_SI)
    return HUGE_PAGES_PREFIX + size.canonical()


def default_machine_state(machine: Machine, reserved: ReservedTables) -> MachineState:
    """The books of an empty machine (MEM-14)."""
    state: dict[NumaId, NodeMemory] = {}
    for node in sorted(machine.numa_nodes, key=lambda node: node.id):
        node_id = NumaId(node.id)
        node_reserved = reserved.get(node_id, {})
        tables: dict[str, Table] = {}
        huge_pages_total = 0
        for pool in node.hugepages:
            resource = huge_page_resource(pool.page_size_kib)
            total = pool.count * pool.page_size_kib * 1024 & UINT64
            huge_pages_total += total
            tables[resource] = _empty_table(total, node_reserved.get(resource, 0), 0)
        tables[MEMORY] = _empty_table(
            node.memory_bytes, node_reserved.get(MEMORY, 0), huge_pages_total
        )
        state[node_id] = NodeMemory(assignments=0, cells=(node_id,), tables=tables)
    return state


def allocatable_blocks(machine: MachineState) -> tuple[MemoryBlock, ...]:
    """What the pod-resources service lists as allocatable: one block per table (MEM-57)."""
    return tuple(
        MemoryBlock(numa_nodes=(node,), resource=resource, size=table.allocatable)
        for node, memory in machine.items()
        for resource, table in sorted(memory.tables.items())
        if table.allocatable
    )


def _empty_table(total: int, system_reserved: int, set_aside: int) -> Table:
    allocatable = total - system_reserved - set_aside & UINT64
    return Table(
        total=total,
        system_reserved=system_reserved,
        allocatable=allocatable,
        reserved=0,
        free=allocatable,
    )

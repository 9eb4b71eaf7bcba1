"""Reserved memory against the machine: the totals must agree with Node Allocatable.

Pure and done once, at construction.
"""

from __future__ import annotations

from collections.abc import Mapping

from numalign.errors import StartError
from numalign.memory.machine_state import MEMORY, UINT64, ReservedTables, is_managed
from numalign.model.ids import NumaId
from numalign.model.machine import Machine
from numalign.model.quantity import ZERO, Quantity
from numalign.model.settings import MemorySettings

STAGE = "memory_manager"
"""The stage that a refused construction names."""

RESERVED = "reservedMemory"
"""The key of the configuration that it names."""


def reserved_tables(settings: MemorySettings, machine: Machine) -> ReservedTables:
    """System-reserved bytes per NUMA node and resource (MEM-9..MEM-13).

    Raises StartError with the kubelet's text where the configuration does not add up.
    """
    _check_totals(_sum_reserved(settings, machine), settings.node_allocatable_reservation)
    tables = _reserved_bytes(settings, machine)
    if not any(node.get(MEMORY, 0) for node in tables.values()):
        raise StartError(
            STAGE,
            "[memorymanager] you should specify the system reserved memory",
            setting=RESERVED,
        )
    return tables


def _sum_reserved(settings: MemorySettings, machine: Machine) -> Mapping[str, Quantity]:
    known = frozenset(machine.node_ids())
    sums: dict[str, Quantity] = {}
    for entry in settings.reserved_memory:
        if entry.numa_node not in known:
            raise StartError(
                STAGE,
                "the reserved memory configuration references a NUMA node "
                f"{entry.numa_node} that does not exist on this machine",
                setting=RESERVED,
            )
        for resource, quantity in entry.limits.items():
            sums[resource] = sums[resource] + quantity if resource in sums else quantity
    return sums


def _check_totals(
    reserved: Mapping[str, Quantity], node_allocatable: Mapping[str, Quantity]
) -> None:
    resources = set(reserved) | {name for name in node_allocatable if is_managed(name)}
    for resource in sorted(resources):
        ours = reserved.get(resource, ZERO)
        theirs = node_allocatable.get(resource, ZERO)
        if ours != theirs:
            raise StartError(
                STAGE,
                f'the total amount "{ours}" of type "{resource}" is not equal to the value '
                f'"{theirs}" determined by Node Allocatable feature',
                setting=RESERVED,
            )


def _reserved_bytes(settings: MemorySettings, machine: Machine) -> ReservedTables:
    tables: dict[NumaId, dict[str, int]] = {NumaId(node): {} for node in machine.node_ids()}
    for entry in settings.reserved_memory:
        for resource, quantity in entry.limits.items():
            amount = quantity.as_int64()
            if amount is None:
                # The misspelling is the kubelet's.
                raise StartError(
                    STAGE,
                    "could not covert a variable of type Quantity to int64",
                    setting=RESERVED,
                )
            tables[entry.numa_node][resource] = amount & UINT64
    return tables

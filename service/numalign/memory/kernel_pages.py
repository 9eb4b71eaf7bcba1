"""Huge pages as the kernel has them: the books cut down to what is really free, and what to say.

Beyond the kubelet, which knows its own books alone (MEM-18). Separate from the policy that asks the
kernel: this is arithmetic over what it answered. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from numalign.memory.machine_state import HUGE_PAGES_PREFIX, MachineState, NodeMemory, Table
from numalign.model.ids import NumaId
from numalign.model.quantity import Format, Quantity
from numalign.provider.values import MemoryBlock

KernelFree: TypeAlias = Mapping[tuple[int, str], int]
"""Bytes of huge pages that the kernel has free, by NUMA node and resource."""


def has_huge_pages(resources: Iterable[str]) -> bool:
    """Whether any of the resources is a huge page size."""
    return any(resource.startswith(HUGE_PAGES_PREFIX) for resource in resources)


def less_own(free: KernelFree, own: Iterable[MemoryBlock]) -> KernelFree:
    """What of `free` is left beside the blocks of a pod that has not touched them yet.

    Blocks over several nodes count on their nodes in order, as they are booked.
    """
    left = dict(free)
    for block in own:
        size = block.size
        for node in block.numa_nodes:
            used = min(size, left.get((node, block.resource), 0))
            if used:
                left[node, block.resource] -= used
                size -= used
    return left


def as_the_kernel_has_it(machine: MachineState, free: KernelFree) -> MachineState:
    """`machine` with no more huge pages free than the kernel says.

    A pool that the kernel tells nothing of stays as it is in the books.
    """
    return {node: _cut(node, memory, free) for node, memory in machine.items()}


def shortage(machine: MachineState, blocks: Iterable[MemoryBlock], free: KernelFree) -> str:
    """What the kernel lacks for `blocks`, which the books of `machine` have room for.

    Empty where it lacks nothing.
    """
    sentences = []
    for block in blocks:
        known = [node for node in block.numa_nodes if (node, block.resource) in free]
        in_kernel = sum(free[node, block.resource] for node in known)
        if not known or len(known) < len(block.numa_nodes) or in_kernel >= block.size:
            continue
        in_books = sum(machine[node].tables[block.resource].free for node in known)
        sentences.append(
            f"{block.resource} on NUMA node{_nodes(known)}: {_words(block.size)} asked for, "
            f"{_words(in_kernel)} free in the kernel, at least "
            f"{_words(max(0, in_books - in_kernel))} used outside the books"
        )
    return "; ".join(sentences)


def lacks(machine: MachineState, free: KernelFree, resource: str) -> str:
    """A note for an explanation: on which nodes the kernel has less than the books."""
    short = [
        f"{_words(free[node, resource])} on NUMA node {node}"
        for node, memory in machine.items()
        if (table := memory.tables.get(resource)) is not None
        and free.get((node, resource), table.free) < table.free
    ]
    return f"the kernel has only {', '.join(short)} free" if short else ""


def _cut(node: NumaId, memory: NodeMemory, free: KernelFree) -> NodeMemory:
    tables = {
        resource: _cut_table(table, free.get((node, resource), table.free))
        for resource, table in memory.tables.items()
    }
    return replace(memory, tables=tables)


def _cut_table(table: Table, free: int) -> Table:
    return replace(table, free=free) if free < table.free else table


def _nodes(nodes: list[NumaId]) -> str:
    return f" {nodes[0]}" if len(nodes) == 1 else f"s {','.join(map(str, nodes))}"


def _words(amount: int) -> str:
    return Quantity.from_int(amount, Format.BINARY_SI).canonical()

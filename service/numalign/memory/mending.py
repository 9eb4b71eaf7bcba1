"""What giving memory back does to a group of NUMA nodes that a single-node booking tore open.

The kubelet gives back in node order (MEM-47). Where a node of a group was also taken alone
(MEM-T3), that can take the other's bytes, and what it should have taken then stays reserved
for nobody. Two strategies: leave the books so, or put the bytes where their holders are.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from numalign.memory.assignments import assignments, narrow_first
from numalign.memory.machine_state import MachineState
from numalign.memory.start_check import replay
from numalign.memory.state import MemoryState
from numalign.model.ids import NumaId


def leave(before: MemoryState, after: MemoryState, default: MachineState) -> MemoryState:  # noqa: ARG001 - the strategies share one signature
    """The books as the kubelet has them after giving back."""
    return after


def mend(before: MemoryState, after: MemoryState, default: MachineState) -> MemoryState:
    """The same books, with bytes moved to the nodes of their holders if they cannot be there.

    `default` are the books of the empty machine. Groups and assignments stay the kubelet's, and
    so do bytes that the blocks still held can explain; hence hints only differ where the
    kubelet's follow from bytes that nobody holds.
    """
    if after.machine is before.machine or _explained(after):
        return after
    exact = replay(narrow_first(assignments(after.containers, after.pods)), default)
    machine = {
        node: replace(memory, tables=exact[node].tables) for node, memory in after.machine.items()
    }
    return replace(after, machine=machine)


def _explained(state: MemoryState) -> bool:
    """Whether the blocks that are held can lie where bytes are reserved."""
    held: defaultdict[tuple[tuple[NumaId, ...], str], int] = defaultdict(int)
    for assignment in assignments(state.containers, state.pods):
        for block in assignment.blocks:
            held[block.numa_nodes, block.resource] += block.size
    unexplained = {
        (node, resource): table.reserved - held.get(((node,), resource), 0)
        for node, memory in state.machine.items()
        for resource, table in memory.tables.items()
    }
    if any(amount < 0 for amount in unexplained.values()):
        return False
    for (nodes, resource), size in held.items():
        if len(nodes) > 1:
            if sum(unexplained[node, resource] for node in nodes) != size:
                return False
            unexplained.update(((node, resource), 0) for node in nodes)
    return not any(unexplained.values())

"""What stands behind the hints: capacity, free bytes and holders per NUMA node.

For explanations only; no decision reads it.
"""

from __future__ import annotations

from numalign.memory.assignments import assignments
from numalign.memory.columns import Columns, columns_of, minimum_nodes
from numalign.memory.eligibility import Request
from numalign.memory.machine_state import NO_TABLE, MachineState
from numalign.memory.state import MemoryState
from numalign.model.ids import NumaId
from numalign.model.numa_mask import nodes_of
from numalign.provider.values import Holder, NodeFacts, ResourceFacts


def resource_facts(state: MemoryState, request: Request) -> tuple[ResourceFacts, ...]:
    """The facts for each requested resource.

    `capacity` is what the resource has on the node beside other pools: allocatable and
    system-reserved bytes together, so that holders, reserved and free add up to it. A node
    without the resource shows zeros.
    """
    columns = columns_of(state.machine, request)
    least = minimum_nodes(columns)
    note = _note(columns)
    return tuple(
        ResourceFacts(
            resource=column.resource,
            requested=column.requested,
            nodes=_node_facts(state, column.resource),
            minimum_nodes=least,
            note=note,
        )
        for column in columns.resources
    )


def _node_facts(state: MemoryState, resource: str) -> tuple[NodeFacts, ...]:
    holders = _holders(state, resource)
    facts: list[NodeFacts] = []
    for node, memory in state.machine.items():
        table = memory.tables.get(resource, NO_TABLE)
        facts.append(
            NodeFacts(
                node=node,
                capacity=table.allocatable + table.system_reserved,
                reserved=table.system_reserved,
                free=table.free,
                holders=tuple(holders[node]),
            )
        )
    return tuple(facts)


def _holders(state: MemoryState, resource: str) -> dict[NumaId, list[Holder]]:
    """Who holds what is reserved on each node.

    The books do not say on which node of a group a block lies. Blocks on one node are placed
    first, then the others in the order in which they came, lowest node first; so the amounts
    of a node add up to what is reserved there.
    """
    left = _reserved(state.machine, resource)
    holders: dict[NumaId, list[Holder]] = {node: [] for node in state.machine}
    booked = [
        (assignment.pod_uid, assignment.container, block)
        for assignment in assignments(state.containers, state.pods)
        for block in assignment.blocks
        if block.resource == resource
    ]
    booked.sort(key=lambda entry: len(entry[2].numa_nodes) > 1)
    for pod_uid, container, block in booked:
        remaining = block.size
        for node in block.numa_nodes:
            amount = min(left[node], remaining)
            if amount:
                holders[node].append(Holder(pod_uid=pod_uid, container=container, amount=amount))
                left[node] -= amount
                remaining -= amount
    return holders


def _reserved(machine: MachineState, resource: str) -> dict[NumaId, int]:
    return {
        node: memory.tables.get(resource, NO_TABLE).reserved for node, memory in machine.items()
    }


def _note(columns: Columns) -> str:
    groups = sorted(columns.whole_groups())
    if not groups:
        return ""
    named = "; ".join(",".join(map(str, nodes_of(group))) for group in groups)
    return f"NUMA nodes in use as a group can only be used together: {named}"

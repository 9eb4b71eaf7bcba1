"""A start that never refuses: the stored blocks are put on the machine as it is now.

The strategy of `compatibility: safe`. Where the kubelet's check agrees, the stored books go on
untouched, so both strategies then give the same answers. Where it does not (memory that moved
between nodes, other huge page pools, another reserved set, nodes gone), the books are made
anew from the blocks, single nodes before groups and oldest first; an assignment that does not
fit any more is left out on its own and reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from numalign.errors import StartError
from numalign.memory import policy_none
from numalign.memory.assignments import Assignment, assignments, narrow_first
from numalign.memory.booking import fill
from numalign.memory.machine_state import UINT64, MachineState, NodeMemory
from numalign.memory.start_check import StartContext, agree, missing_place, replay
from numalign.memory.state import ContainerBlocks, MemoryState, StoredMemory, decode
from numalign.model.ids import NumaId, PodUid
from numalign.provider.engine import Started
from numalign.provider.values import MemoryBlock


def rebase(stored: bytes | None, context: StartContext) -> Started[MemoryState]:
    """The state to go on with, and a line for everything that is not as it was stored.

    Raises StateError only where `stored` cannot be read at all.
    """
    if stored is None:
        return Started(MemoryState(machine=context.default))
    found = decode(stored)
    if context.policy == policy_none.NAME:
        return Started(
            MemoryState(machine=context.default),
            tuple(
                f"{_name(assignment)}: given up, the policy is {policy_none.NAME} now"
                for assignment in assignments(found.containers, found.pods)
            ),
        )
    if not found.machine and not found.containers:
        return Started(MemoryState(machine=context.default))
    if _stands(found, context):
        return Started(found.to_state())
    return _rebuild(found, context)


def _stands(found: StoredMemory, context: StartContext) -> bool:
    """Whether the books can go on as they are."""
    if found.pod_entries and not context.pod_entries and found.pods:
        return False
    booked = tuple(assignments(found.containers, found.pods, pod_entries=context.pod_entries))
    try:
        # The second order is the one in which this module itself makes books.
        return any(
            agree(found.machine, replay(order, context.default))
            for order in (booked, narrow_first(booked))
        )
    except StartError:
        return False


def _rebuild(found: StoredMemory, context: StartContext) -> Started[MemoryState]:
    reports = list(_differences(found.machine, context.default))
    books: dict[NumaId, NodeMemory] = dict(context.default)
    kept: dict[PodUid, dict[str, tuple[MemoryBlock, ...]]] = {}
    pods: dict[PodUid, tuple[MemoryBlock, ...]] = {}
    for assignment in narrow_first(assignments(found.containers, found.pods)):
        pod_uid = assignment.pod_uid
        problem = missing_place(books, assignment) or no_room(books, assignment)
        if problem is not None:
            reports.append(f"{_name(assignment)}: left out, {problem}")
            continue
        for block in assignment.blocks:
            fill(books, block, block.size)
        if assignment.container == "":
            pods[pod_uid] = assignment.blocks
            kept[pod_uid] = dict(found.containers[pod_uid])
        else:
            kept.setdefault(pod_uid, {})[assignment.container] = assignment.blocks
    if not reports:
        reports.append("the stored books did not add up; made anew from the stored assignments")
    containers: ContainerBlocks = kept
    return Started(MemoryState(machine=books, containers=containers, pods=pods), tuple(reports))


def no_room(books: Mapping[NumaId, NodeMemory], assignment: Assignment) -> str | None:
    """Why the free memory of its nodes does not hold an assignment, or None."""
    for block in assignment.blocks:
        free = sum(books[node].tables[block.resource].free for node in block.numa_nodes) & UINT64
        needed = sum(
            other.size
            for other in assignment.blocks
            if other.resource == block.resource and other.numa_nodes == block.numa_nodes
        )
        if free < needed:
            nodes = ",".join(map(str, block.numa_nodes))
            return (
                f"{needed} bytes of {block.resource} on NUMA nodes {nodes} are needed and "
                f"{free} are free"
            )
    return None


def _differences(stored: MachineState, now: MachineState) -> Iterator[str]:
    """What the machine or its reservation has become, one line per node and resource."""
    for node in sorted(stored.keys() | now.keys()):
        if node not in now:
            yield f"NUMA node {node} is gone"
            continue
        if node not in stored:
            yield f"NUMA node {node} is new"
            continue
        before, after = stored[node].tables, now[node].tables
        for resource in sorted(before.keys() | after.keys()):
            old, new = before.get(resource), after.get(resource)
            place = f"NUMA node {node}, {resource}"
            if old is None:
                yield f"{place}: is new"
            elif new is None:
                yield f"{place}: is gone"
            elif (old.total, old.system_reserved, old.allocatable) != (
                new.total,
                new.system_reserved,
                new.allocatable,
            ):
                yield (
                    f"{place}: total {old.total} is now {new.total} bytes, reserved "
                    f"{old.system_reserved} is now {new.system_reserved}, allocatable "
                    f"{old.allocatable} is now {new.allocatable}"
                )


def _name(assignment: Assignment) -> str:
    container = f", container {assignment.container}" if assignment.container else ""
    return f"pod {assignment.pod_uid}{container}"

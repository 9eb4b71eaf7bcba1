"""The kubelet's start check: the stored books must be the ones the stored blocks lead to.

Any difference refuses the start; the strategy of `compatibility: kubelet`. Its sibling rebase
never refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from numalign.errors import StartError, StateError
from numalign.memory import policy_none
from numalign.memory.assignments import Assignment, assignments
from numalign.memory.booking import fill
from numalign.memory.machine_state import MachineState, NodeMemory
from numalign.memory.state import MemoryState, StoredMemory, decode
from numalign.model.ids import NumaId
from numalign.model.quoting import quoted
from numalign.provider.engine import Started

STAGE = "memory_manager_start"
"""The stage that a refused start names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartContext:
    """What a start strategy knows besides the stored state.

    `default` are the books of the empty machine, without nodes under the None policy.
    `pod_entries` says whether pod-level management is on. `directory` only appears in texts.
    """

    policy: str
    pod_entries: bool
    default: MachineState
    directory: str


def refuse(stored: bytes | None, context: StartContext) -> Started[MemoryState]:
    """The stored state as it is, or StartError with the kubelet's text (MEM-73, MEM-74).

    Without a stored state: the empty machine.
    """
    if stored is None:
        return Started(MemoryState(machine=context.default))
    found = _restore(stored, context)
    if context.policy == policy_none.NAME:
        return Started(found.to_state())
    if not found.machine:
        if found.containers:
            raise StartError(
                STAGE,
                "[memorymanager] machine state can not be empty when it has memory assignments",
            )
        return Started(MemoryState(machine=context.default))
    if not agree(
        found.machine,
        replay(
            assignments(found.containers, found.pods, pod_entries=context.pod_entries),
            context.default,
        ),
    ):
        raise StartError(
            STAGE, "[memorymanager] the expected machine state is different from the real one"
        )
    return Started(found.to_state())


def replay(booked: Iterable[Assignment], default: MachineState) -> MachineState:
    """The books that assignments lead to, in their order, on an empty machine (MEM-74).

    Raises StartError where a block names a node or resource that is not there.
    """
    books = dict(default)
    for assignment in booked:
        problem = missing_place(books, assignment)
        if problem is not None:
            raise StartError(STAGE, problem)
        for block in assignment.blocks:
            fill(books, block, block.size)
    return books


def missing_place(books: Mapping[NumaId, NodeMemory], assignment: Assignment) -> str | None:
    """What an assignment names that the machine does not have, in the kubelet's words."""
    for block in assignment.blocks:
        for node in block.numa_nodes:
            missing = ""
            if node not in books:
                missing = "the NUMA that"
            elif block.resource not in books[node].tables:
                missing = "memory resource that"
            if missing:
                return (
                    f"[memorymanager] (pod: {assignment.pod_uid}, container: "
                    f"{assignment.container}) the memory assignment uses {missing} does not exist"
                )
    return None


def agree(stored: MachineState, expected: MachineState) -> bool:
    """Whether two books mean the same: bytes may lie on any node of a group (MEM-74)."""
    return stored.keys() == expected.keys() and all(
        _same_node(node, stored, expected) for node in stored
    )


def _same_node(node: NumaId, stored: MachineState, expected: MachineState) -> bool:
    ours, theirs = stored[node], expected[node]
    if (
        ours.assignments != theirs.assignments
        or set(ours.cells) != set(theirs.cells)
        or ours.tables.keys() != theirs.tables.keys()
    ):
        return False
    for resource, table in ours.tables.items():
        other = theirs.tables[resource]
        if (table.total, table.system_reserved, table.allocatable) != (
            other.total,
            other.system_reserved,
            other.allocatable,
        ):
            return False
        if _group_sums(stored, ours.cells, resource) != _group_sums(expected, ours.cells, resource):
            return False
    return True


def _group_sums(machine: MachineState, cells: tuple[NumaId, ...], resource: str) -> tuple[int, int]:
    tables = [
        machine[cell].tables[resource]
        for cell in cells
        if cell in machine and resource in machine[cell].tables
    ]
    return sum(table.free for table in tables), sum(table.reserved for table in tables)


def _restore(stored: bytes, context: StartContext) -> StoredMemory:
    try:
        found = decode(stored)
    except StateError as error:
        raise _cannot_restore(str(error), context) from error
    if found.pod_entries and not context.pod_entries:
        # A file written with pod-level management on fails the checksum without it (MEM-T14).
        raise _cannot_restore("checkpoint is corrupted", context)
    if found.policy != context.policy:
        raise _cannot_restore(
            f"[memorymanager] configured policy {quoted(context.policy)} differs from state "
            f"checkpoint policy {quoted(found.policy)}",
            context,
        )
    return found


def _cannot_restore(cause: str, context: StartContext) -> StartError:
    return StartError(
        STAGE,
        f"could not restore state from checkpoint: {cause}, please drain this node and delete the "
        f'memory manager checkpoint file "{context.directory}/memory_manager_state" before '
        "restarting Kubelet",
    )

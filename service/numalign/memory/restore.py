"""Giving a pod back the memory that the record says it has, where the books have lost it.

Separate from re-basing, which fits what was stored: here the stored books are gone, and the
Topology Manager's record stands in for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from numalign.memory import policy_none
from numalign.memory.assignments import Assignment, narrow_first
from numalign.memory.booking import fill
from numalign.memory.machine_state import NodeMemory
from numalign.memory.rebase import no_room
from numalign.memory.start_check import StartContext, missing_place
from numalign.memory.state import Blocks, MemoryState
from numalign.model.ids import NumaId
from numalign.provider.engine import Lost, Recorded, Restored


def restore(state: MemoryState, recorded: Recorded, context: StartContext) -> Restored[MemoryState]:
    """`state` with the recorded blocks of one pod for which there is room.

    A pod that was booked as a whole takes its blocks back as a whole, and its containers say
    only how they share them. Finished init containers take nothing back (MEM-51).
    """
    pod_uid = recorded.pod_uid
    held = state.containers.get(pod_uid, {})
    missing = {
        holding.container: holding.memory
        for holding in recorded.holdings
        if holding.memory
        and holding.container not in held
        and holding.container not in recorded.finished
    }
    if not missing:
        return Restored(state)
    if pod_uid in state.pods:
        return Restored(state.with_containers(pod_uid, {**held, **missing}))
    if context.pod_entries and recorded.pod_holding.memory:
        return _as_a_whole(state, recorded, missing, context)
    books: dict[NumaId, NodeMemory] = dict(state.machine)
    taken = dict(held)
    lost: list[Lost] = []
    for assignment in narrow_first(
        Assignment(pod_uid=pod_uid, container=container, blocks=blocks)
        for container, blocks in missing.items()
    ):
        problem = _problem(books, assignment, context)
        if problem:
            lost.append(_lost(assignment, problem))
            continue
        _book(books, assignment)
        taken[assignment.container] = assignment.blocks
    if len(taken) == len(held):
        return Restored(state, tuple(lost))
    return Restored(replace(state, machine=books).with_containers(pod_uid, taken), tuple(lost))


def _as_a_whole(
    state: MemoryState, recorded: Recorded, missing: Mapping[str, Blocks], context: StartContext
) -> Restored[MemoryState]:
    pod_uid = recorded.pod_uid
    assignment = Assignment(pod_uid=pod_uid, container="", blocks=recorded.pod_holding.memory)
    books: dict[NumaId, NodeMemory] = dict(state.machine)
    problem = _problem(books, assignment, context)
    if problem:
        return Restored(state, (_lost(assignment, problem),))
    _book(books, assignment)
    pods = {**state.pods, pod_uid: assignment.blocks}
    held = state.containers.get(pod_uid, {})
    restored = replace(state, machine=books, pods=pods)
    return Restored(restored.with_containers(pod_uid, {**held, **missing}))


def _book(books: dict[NumaId, NodeMemory], assignment: Assignment) -> None:
    for block in assignment.blocks:
        fill(books, block, block.size)


def _lost(assignment: Assignment, problem: str) -> Lost:
    sizes = ", ".join(f"{block.size} bytes of {block.resource}" for block in assignment.blocks)
    return Lost(container=assignment.container, message=f"{sizes}: {problem}")


def _problem(
    books: Mapping[NumaId, NodeMemory], assignment: Assignment, context: StartContext
) -> str | None:
    if context.policy == policy_none.NAME:
        return f"the policy is {policy_none.NAME} now"
    return missing_place(books, assignment) or no_room(books, assignment)

"""What a worker knows of its pod, and how that changes: the state machine of WRK-3 to WRK-9.

Pure: an update and the time go in, the next value and what the worker has to do come out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from numalign_agent.pod import AgentPod
from numalign_agent.workers.grace import effective_grace


class WorkState(StrEnum):
    """Where a pod is in its life; never backwards for the same UID (WRK-3)."""

    SYNC = "sync"
    TERMINATING = "terminating"
    TERMINATED = "terminated"
    FINISHED = "finished"


class UpdateKind(StrEnum):
    """Why a worker is told about its pod."""

    CREATE = "create"
    UPDATE = "update"
    SYNC = "sync"
    KILL = "kill"


@dataclass(frozen=True, slots=True)
class EndedBy:
    """Why a pod is ended by the node: what its status says, and the condition beside it."""

    reason: str
    message: str
    phase: str = "Failed"
    condition: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Kill:
    """How a pod is to be ended. `grace` is in seconds; None: as the pod says."""

    evict: bool = False
    grace: int | None = None
    ended_by: EndedBy | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """One message to a worker.

    `orphan`: the runtime has the pod, and nobody wants it. `seen_at` is when the agent first
    heard of the pod, in seconds since the epoch; 0: unknown.
    """

    kind: UpdateKind
    pod: AgentPod
    kill: Kill | None = None
    orphan: bool = False
    seen_at: float = 0.0


class Reaction(StrEnum):
    """What a worker does about an update."""

    IGNORE = "ignore"
    LOOK = "look"
    INTERRUPT = "interrupt"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodWork:
    """Everything that a worker knows. Times are seconds since the epoch; 0: not yet.

    `kind` is that of the last update. `observed_end`: an operation has begun that ends
    containers. `started`: an operation has begun that starts them. `orphan`: no source wanted
    the pod when it was first seen.
    """

    pod: AgentPod
    kind: UpdateKind = UpdateKind.CREATE
    state: WorkState = WorkState.SYNC
    end_requested_at: float = 0.0
    deleted: bool = False
    evicted: bool = False
    grace: int | None = None
    ended_by: EndedBy | None = None
    restart_requested: bool = False
    started: bool = False
    observed_end: bool = False
    orphan: bool = False

    @property
    def uid(self) -> str:
        """UID of the pod."""
        return self.pod.uid

    @property
    def end_requested(self) -> bool:
        """Whether the pod is to end, or has ended."""
        return self.end_requested_at > 0

    @property
    def known_terminated(self) -> bool:
        """Whether all containers are stopped."""
        return self.state in {WorkState.TERMINATED, WorkState.FINISHED}

    @property
    def content_goes(self) -> bool:
        """Whether nothing of the pod has to be kept (WRK-12)."""
        return self.evicted or (self.deleted and self.known_terminated)


def first_work(update: Update, now: float, *, runtime_idle: bool) -> PodWork:
    """A worker's first look. `runtime_idle`: no container of the pod runs (WRK-7)."""
    work = PodWork(pod=update.pod, kind=update.kind, orphan=update.orphan)
    if update.pod.is_terminal and runtime_idle and not update.orphan:
        return replace(
            work,
            state=WorkState.TERMINATED,
            end_requested_at=now,
            deleted=update.pod.deletion_timestamp is not None,
            observed_end=True,
        )
    return _request_end(work, update, now)


def accept(work: PodWork, update: Update, now: float) -> tuple[PodWork, Reaction]:
    """Take in an update; an update that is ignored leaves the work as it was, or nearly."""
    if update.kind is UpdateKind.CREATE and work.end_requested and not update.orphan:
        return replace(work, restart_requested=True), Reaction.IGNORE
    if work.state is WorkState.FINISHED:
        return work, Reaction.IGNORE
    if update.orphan and work.known_terminated:
        return work, Reaction.IGNORE
    pod = work.pod if update.orphan else update.pod
    seen = replace(work, pod=pod, kind=update.kind)
    after = _request_end(seen, update, now)
    began = after.end_requested and not work.end_requested
    shortened = work.grace is not None and after.grace != work.grace
    return after, Reaction.INTERRUPT if began or shortened else Reaction.LOOK


def _request_end(work: PodWork, update: Update, now: float) -> PodWork:
    """Whether the pod is to end from now on (WRK-4), and with what grace (WRK-6)."""
    pod = work.pod
    kill = update.kill
    deleted = update.orphan or pod.deletion_timestamp is not None
    wanted = deleted or pod.is_terminal or update.kind is UpdateKind.KILL
    if not work.end_requested and not wanted:
        return work
    override = None if kill is None else kill.grace
    return replace(
        work,
        state=WorkState.TERMINATING if work.state is WorkState.SYNC else work.state,
        end_requested_at=work.end_requested_at or now,
        deleted=work.deleted or deleted,
        evicted=work.evicted or (kill is not None and kill.evict),
        grace=effective_grace(work.grace, pod, override),
        ended_by=work.ended_by if kill is None or kill.ended_by is None else kill.ended_by,
    )


def began(work: PodWork) -> PodWork:
    """An operation begins in the state that the work is in."""
    if work.state is WorkState.SYNC:
        return replace(work, started=True)
    return replace(work, observed_end=True)


def turned_terminal(work: PodWork, now: float) -> PodWork:
    """The sync operation says that the pod is over: it is to end."""
    if work.end_requested:
        return work
    return replace(
        work,
        state=WorkState.TERMINATING,
        end_requested_at=now,
        grace=effective_grace(None, work.pod, None),
    )


def stopped(work: PodWork) -> PodWork:
    """All containers are stopped."""
    return replace(work, state=WorkState.TERMINATED)


def finished(work: PodWork) -> PodWork:
    """Nothing is left to do."""
    return replace(work, state=WorkState.FINISHED)


def orphaned(work: PodWork, now: float) -> PodWork:
    """No source wants the pod any more: it is to end, with the grace of its last known form."""
    return _request_end(work, Update(UpdateKind.KILL, work.pod, orphan=True), now)

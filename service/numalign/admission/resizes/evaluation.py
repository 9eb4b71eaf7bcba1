"""Pending resizes, in order, through the chain (RES-1 to RES-4, RSZ-6).

Pure: the state goes in and a new one comes out. The chain is asked through a function, so
that it does not matter here which handlers it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.allocation import ResizeGates, allocation_of, overlaid
from numalign.admission.handlers.resize_feasibility import REASON as NEVER
from numalign.admission.handlers.verdict import Verdict
from numalign.admission.resizes.conditions import (
    DEFERRED,
    IN_PROGRESS,
    INFEASIBLE,
    PENDING,
    ResizeCondition,
    ResizeEvent,
    pending_event,
    started_event,
)
from numalign.kubelet_files.allocation_checkpoint import PodAllocation
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod_resources import pod_requests
from numalign.model.qos import is_guaranteed
from numalign.model.quantity import ZERO

AskChain = Callable[[AdmitPod, Sequence[AdmitPod], PodAllocation | None], Verdict]
"""The chain for a resize: the desired pod, the others as allocated, and what the pod has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeState:
    """The queue in its order, the conditions of pods, and what each was admitted with."""

    queue: tuple[str, ...] = ()
    pending: Mapping[str, ResizeCondition] = field(default_factory=dict)
    in_progress: Mapping[str, ResizeCondition] = field(default_factory=dict)
    allocations: Mapping[str, PodAllocation] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """The state afterwards, events in order, and the pods to sync at once, in order."""

    state: ResizeState
    events: tuple[ResizeEvent, ...] = ()
    synced: tuple[str, ...] = ()


def queued(
    state: ResizeState,
    uid: str,
    pods: Mapping[str, AdmitPod],
    resize: ResizeGates,
    gates: FeatureGates,
) -> ResizeState:
    """The state with one more pending resize; the queue holds a UID once and is sorted (RES-2).

    `pods` are the desired pods; UIDs that are not among them are dropped.
    """
    if uid in state.queue:
        return state
    known = [other for other in (*state.queue, uid) if other in pods]
    known.sort(key=lambda other: _key(state, pods[other], resize, gates))
    return replace(state, queue=tuple(known))


def evaluated(
    state: ResizeState,
    pods: Mapping[str, AdmitPod],
    ask: AskChain,
    now: float,
    resize: ResizeGates,
    *,
    sources_ready: bool = True,
) -> Evaluated:
    """What one look at every pending resize gives (RES-3); nothing while sources are not ready.

    A resize that stays pending counts as changed, so its pod is synced again.
    """
    if not sources_ready:
        return Evaluated(state=state)
    events: list[ResizeEvent] = []
    synced: list[str] = []
    for uid in state.queue:
        pod = pods.get(uid)
        if pod is None or not is_pending(state, pod, resize):
            state = settled(state, uid)
            continue
        allocation = state.allocations.get(uid)
        others = _shown(pods.values(), uid, state.allocations, resize)
        outcome = answered(state, pod, ask(pod, others, allocation), now, resize)
        state = outcome.state
        events += outcome.events
        synced += outcome.synced
    return Evaluated(state=state, events=tuple(events), synced=tuple(synced))


def is_pending(state: ResizeState, pod: AdmitPod, resize: ResizeGates) -> bool:
    """Whether the pod wants something else than it is allocated (RES-1)."""
    return overlaid(pod, state.allocations.get(pod.uid), resize)[1]


def settled(state: ResizeState, uid: str) -> ResizeState:
    """The state without a resize that there is nothing to do about any more (RES-3).

    The pod is gone, or wants what it is allocated.
    """
    return replace(state, queue=_without(state.queue, uid), pending=_less(state.pending, uid))


def answered(
    state: ResizeState, pod: AdmitPod, verdict: Verdict, now: float, resize: ResizeGates
) -> Evaluated:
    """What the chain's answer to one pending resize changes (RES-3, RSZ-6).

    Granted, the pod is allocated what it wants. Infeasible, it waits no longer; refused for any
    other reason, it stays in the queue. There is an event where that is news.
    """
    uid = pod.uid
    if verdict.admit:
        condition = ResizeCondition(type=IN_PROGRESS, generation=pod.generation, since=now)
        granted = replace(
            settled(state, uid),
            in_progress={**state.in_progress, uid: condition},
            allocations={**state.allocations, uid: allocation_of(pod, resize)},
        )
        return Evaluated(state=granted, events=(started_event(pod),), synced=(uid,))
    before = state.pending.get(uid)
    condition = _pending(pod, verdict, before, now)
    refused = replace(state, pending={**state.pending, uid: condition})
    if condition.reason == INFEASIBLE:
        refused = replace(refused, queue=_without(state.queue, uid))
    is_news = before is None or (before.reason, before.generation) != (
        condition.reason,
        condition.generation,
    )
    events = (pending_event(pod, condition, verdict.reason),) if is_news else ()
    return Evaluated(state=refused, events=events, synced=(uid,))


def _without(queue: Sequence[str], uid: str) -> tuple[str, ...]:
    return tuple(other for other in queue if other != uid)


def _less(conditions: Mapping[str, ResizeCondition], uid: str) -> Mapping[str, ResizeCondition]:
    return {other: condition for other, condition in conditions.items() if other != uid}


def _pending(
    pod: AdmitPod, verdict: Verdict, before: ResizeCondition | None, now: float
) -> ResizeCondition:
    return ResizeCondition(
        type=PENDING,
        reason=INFEASIBLE if verdict.reason == NEVER else DEFERRED,
        message=verdict.message,
        generation=pod.generation,
        since=now if before is None else before.since,
    )


def _shown(
    pods: Iterable[AdmitPod],
    but: str,
    allocations: Mapping[str, PodAllocation],
    resize: ResizeGates,
) -> list[AdmitPod]:
    """The other pods, each with what it was admitted with (ADM-6)."""
    return [overlaid(pod, allocations.get(pod.uid), resize)[0] for pod in pods if pod.uid != but]


def _key(
    state: ResizeState, pod: AdmitPod, resize: ResizeGates, gates: FeatureGates
) -> tuple[bool, int, bool, bool, float]:
    """Raises nothing first; then priority, Guaranteed, and how long it has been pending.

    Among those that raise nothing the kubelet's order is not defined; they follow the rest.
    """
    condition = state.pending.get(pod.uid)
    return (
        _raises(pod, state.allocations.get(pod.uid), resize, gates),
        -(pod.priority or 0),
        not is_guaranteed(pod.pod, gates),
        condition is None,
        0.0 if condition is None else condition.since,
    )


def _raises(
    pod: AdmitPod, allocation: PodAllocation | None, resize: ResizeGates, gates: FeatureGates
) -> bool:
    """Whether the pod wants more CPU or memory than it was admitted with."""
    allocated, _ = overlaid(pod, allocation, resize)
    wanted, has = pod_requests(pod.pod, gates), pod_requests(allocated.pod, gates)
    return any(wanted.get(name, ZERO) > has.get(name, ZERO) for name in ("cpu", "memory"))

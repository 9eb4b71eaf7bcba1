"""The status of a pod, from everything that is known of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numalign_agent.pod import TERMINAL_PHASES, AgentPod
from numalign_agent.status.conditions import conditions, dated
from numalign_agent.status.container_statuses import (
    ContainerFacts,
    container_statuses,
    with_ends,
)
from numalign_agent.status.phase import FAILED, phase_of
from numalign_agent.status.times import rfc3339, seconds_of
from numalign_agent.workers.work import EndedBy

DEADLINE_REASON = "DeadlineExceeded"
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"
REJECTED_PREFIX = "Pod was rejected: "

PodStatus = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """What a status is computed from; `now` is in seconds since the epoch.

    `before` is the status until now. `is_over`: all containers are stopped for good.
    `extra_conditions` are those of pending resizes.
    """

    containers: ContainerFacts
    before: Mapping[str, Any]
    qos_class: str
    now: float
    is_over: bool = False
    ended_by: EndedBy | None = None
    extra_conditions: Sequence[Mapping[str, Any]] = ()


def computed(pod: AgentPod, facts: PodFacts) -> PodStatus:
    """The status now. A terminal phase is never left, and keeps its reason (WRK-17)."""
    before = facts.before
    statuses = container_statuses(pod, facts.containers, before)
    if facts.is_over:
        statuses = with_ends(statuses)
    phase, reason, message = _verdict(pod, facts, statuses)
    now = rfc3339(facts.now)
    old = before.get("conditions") or ()
    made = conditions(pod, statuses, phase, before=old, now=now)
    extra = list(facts.extra_conditions)
    if facts.ended_by is not None and facts.ended_by.condition is not None:
        extra.append(facts.ended_by.condition)
    else:
        extra += [c for c in old if c.get("type") == "DisruptionTarget"]
    status: PodStatus = {
        "phase": phase,
        "conditions": made + [dated(dict(condition), old, now) for condition in extra],
        "startTime": before.get("startTime") or pod.status.get("startTime") or now,
        **statuses,
    }
    if facts.qos_class:
        status["qosClass"] = facts.qos_class
    if reason:
        status["reason"] = reason
    if message:
        status["message"] = message
    generation = pod.metadata.get("generation")
    if generation:
        status["observedGeneration"] = generation
    return status


def rejected(
    pod: AgentPod, reason: str, message: str, before: Mapping[str, Any], qos_class: str, now: float
) -> PodStatus:
    """The status of a pod that was not admitted (ADM-10): no conditions, no containers."""
    status: PodStatus = {
        "phase": FAILED,
        "reason": reason,
        "message": REJECTED_PREFIX + message,
        "startTime": before.get("startTime") or pod.status.get("startTime") or rfc3339(now),
    }
    if qos_class:
        status["qosClass"] = qos_class
    generation = pod.metadata.get("generation")
    if generation:
        status["observedGeneration"] = generation
    return status


def is_overdue(pod: AgentPod, before: Mapping[str, Any], now: float) -> bool:
    """Whether the pod has been active for longer than it may (WRK-16)."""
    limit = pod.spec.get("activeDeadlineSeconds")
    started = before.get("startTime") or pod.status.get("startTime")
    if limit is None or not started:
        return False
    return now - seconds_of(started) >= float(limit)


def _verdict(pod: AgentPod, facts: PodFacts, statuses: Mapping[str, Any]) -> tuple[str, str, str]:
    """Phase, reason and message."""
    before = facts.before
    for known in (before, pod.status):
        if known.get("phase") in TERMINAL_PHASES:
            return (known["phase"], known.get("reason") or "", known.get("message") or "")
    ended = facts.ended_by
    if ended is not None:
        # Told at once; a sink sends it when nothing runs any more (STAT-3).
        return (ended.phase, ended.reason, ended.message)
    if is_overdue(pod, before, facts.now):
        return (FAILED, DEADLINE_REASON, DEADLINE_MESSAGE)
    phase = phase_of(pod, statuses, is_over=facts.is_over)
    if facts.is_over and phase not in TERMINAL_PHASES and not pod.is_static:
        phase = FAILED
    if phase == before.get("phase"):
        return (phase, before.get("reason") or "", before.get("message") or "")
    return (phase, "", "")

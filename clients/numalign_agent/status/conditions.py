"""The conditions of a pod that this agent owns (STAT-3). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numalign_agent.containers.spec import ContainerKind, containers_of
from numalign_agent.pod import TERMINAL_PHASES, AgentPod
from numalign_agent.status.container_statuses import Status, statuses_in
from numalign_agent.status.phase import SUCCEEDED

SCHEDULED, INITIALIZED, READY = "PodScheduled", "Initialized", "Ready"
CONTAINERS_READY = "ContainersReady"

OWNED = frozenset(
    {
        SCHEDULED,
        INITIALIZED,
        READY,
        CONTAINERS_READY,
        "PodReadyToStartContainers",
        "PodResizePending",
        "PodResizeInProgress",
    }
)
"""Types that belong to the node's agent; conditions of other types are left alone."""

Condition = dict[str, Any]


def conditions(
    pod: AgentPod,
    statuses: Mapping[str, Any],
    phase: str,
    *,
    before: Sequence[Mapping[str, Any]],
    now: str,
) -> list[Condition]:
    """The conditions of a pod; `before` are those until now, `now` is the time as text."""
    by_name = {status["name"]: status for status in statuses_in(statuses)}
    containers_ready = _containers_ready(pod, by_name, phase)
    made = [
        _initialized(pod, by_name, phase),
        _ready(pod, containers_ready),
        containers_ready,
        {"type": SCHEDULED, "status": "True"},
    ]
    return [dated(condition, before, now) for condition in made]


def dated(condition: Condition, before: Sequence[Mapping[str, Any]], now: str) -> Condition:
    """The condition with the time of its last change, which is `now` if it changed."""
    for old in before:
        if old.get("type") == condition["type"] and old.get("status") == condition["status"]:
            since = old.get("lastTransitionTime") or now
            return {**condition, "lastTransitionTime": since}
    return {**condition, "lastTransitionTime": now}


def ready_differs(pod: AgentPod, own: Mapping[str, Any]) -> bool:
    """Whether the pod's source shows another `Ready` than its readiness gates give (HND-5)."""
    containers_ready = condition_in(own, CONTAINERS_READY)
    if containers_ready is None:
        return False
    shown = condition_in(pod.status, READY) or {}
    wanted = _ready(pod, dict(containers_ready))
    return any(shown.get(key) != wanted.get(key) for key in ("status", "message"))


def condition_in(status: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    """The condition of this type; None where there is none."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == kind:
            found: Mapping[str, Any] = condition
            return found
    return None


def _initialized(pod: AgentPod, by_name: Mapping[str, Status], phase: str) -> Condition:
    if phase == SUCCEEDED:
        return {"type": INITIALIZED, "status": "True", "reason": "PodCompleted"}
    apps = {s.name for s in containers_of(pod) if s.kind is ContainerKind.APP}
    if any("waiting" not in status["state"] for name, status in by_name.items() if name in apps):
        return {"type": INITIALIZED, "status": "True"}
    incomplete = [
        spec.name
        for spec in containers_of(pod)
        if (spec.kind is ContainerKind.INIT and not _is_ready(by_name, spec.name))
        or (spec.kind is ContainerKind.SIDECAR and not _has_started(by_name, spec.name))
    ]
    if not incomplete:
        return {"type": INITIALIZED, "status": "True"}
    return {
        "type": INITIALIZED,
        "status": "False",
        "reason": "ContainersNotInitialized",
        "message": f"containers with incomplete status: [{' '.join(incomplete)}]",
    }


def _containers_ready(pod: AgentPod, by_name: Mapping[str, Status], phase: str) -> Condition:
    if phase in TERMINAL_PHASES:
        reason = "PodCompleted" if phase == SUCCEEDED else "PodFailed"
        return {"type": CONTAINERS_READY, "status": "False", "reason": reason}
    judged = [spec.name for spec in containers_of(pod) if spec.kind is not ContainerKind.INIT]
    unready = [name for name in judged if not _is_ready(by_name, name)]
    if not unready:
        return {"type": CONTAINERS_READY, "status": "True"}
    return {
        "type": CONTAINERS_READY,
        "status": "False",
        "reason": "ContainersNotReady",
        "message": f"containers with unready status: [{' '.join(unready)}]",
    }


def _ready(pod: AgentPod, containers_ready: Condition) -> Condition:
    """As the containers are, but with what the pod's readiness gates say (HND-5)."""
    condition = {**containers_ready, "type": READY}
    if containers_ready["status"] != "True":
        return condition
    missing = []
    for gate in pod.spec.get("readinessGates") or ():
        kind = gate.get("conditionType")
        found = condition_in(pod.status, kind)
        if found is None:
            missing.append(
                f'corresponding condition of pod readiness gate "{kind}" does not exist.'
            )
        elif found.get("status") != "True":
            missing.append(
                f'the status of pod readiness gate "{kind}" is not "True", but '
                f"{found.get('status')}"
            )
    if not missing:
        return condition
    return {
        "type": READY,
        "status": "False",
        "reason": "ReadinessGatesNotReady",
        "message": ", ".join(missing),
    }


def _is_ready(by_name: Mapping[str, Status], name: str) -> bool:
    status = by_name.get(name)
    return status is not None and bool(status["ready"])


def _has_started(by_name: Mapping[str, Status], name: str) -> bool:
    status = by_name.get(name)
    return status is not None and bool(status["started"])

"""The status of each container, from what the runtime has of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numalign_agent.containers.plan import latest_of
from numalign_agent.containers.spec import ContainerKind, ContainerSpec, containers_of
from numalign_agent.pod import AgentPod
from numalign_agent.runners.port import ContainerPhase, RuntimeContainer
from numalign_agent.status.times import rfc3339

INITIALIZING = "PodInitializing"
CREATING = "ContainerCreating"
UNKNOWN_REASON = "ContainerStatusUnknown"
UNKNOWN_EXIT = 137
LOST = "The container could not be located when the pod was terminated"

Status = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a container does not run."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerFacts:
    """What is known of a pod's containers.

    `waiting`, `allocated` (requests and limits) and `devices` (as `allocatedResourcesStatus`) are
    by container name. `ready` and `started` are ids of running containers that their probes, or
    the lack of them, call so.
    """

    containers: tuple[RuntimeContainer, ...] = ()
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    ready: frozenset[str] = frozenset()
    started: frozenset[str] = frozenset()
    allocated: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    devices: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)


def container_statuses(
    pod: AgentPod, facts: ContainerFacts, before: Mapping[str, Any]
) -> dict[str, list[Status]]:
    """`initContainerStatuses` and `containerStatuses`; `before` is the pod's status until now."""
    latest = latest_of(facts.containers)
    specs = list(containers_of(pod))
    has_init = any(spec.kind is not ContainerKind.APP for spec in specs)
    known = {status["name"]: status for status in statuses_in(before)}
    statuses: dict[str, list[Status]] = {}
    for spec in specs:
        key = "containerStatuses" if spec.kind is ContainerKind.APP else "initContainerStatuses"
        waiting = facts.waiting.get(spec.name) or Waiting(INITIALIZING if has_init else CREATING)
        status = _status(spec, latest.get(spec.name), waiting, facts, known.get(spec.name))
        statuses.setdefault(key, []).append(status)
    return statuses


def statuses_in(status: Mapping[str, Any]) -> Iterable[Status]:
    """The container statuses of a pod's status, init containers first."""
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()


def _status(
    spec: ContainerSpec,
    container: RuntimeContainer | None,
    waiting: Waiting,
    facts: ContainerFacts,
    before: Status | None,
) -> Status:
    if container is None:
        return _of_none(spec, waiting, before)
    running = container.phase is ContainerPhase.RUNNING
    state = _state(container, waiting)
    last = _last_state(container, facts.containers, before)
    if "waiting" in state and container.phase is ContainerPhase.EXITED:
        last = {"terminated": _terminated(container)}
    ready = running and container.id in facts.ready
    if spec.kind is ContainerKind.INIT:
        ready = container.phase is ContainerPhase.EXITED and container.exit_code == 0
    return {
        "name": spec.name,
        "state": state,
        "lastState": last,
        "ready": ready,
        "restartCount": container.attempt,
        "image": spec.image,
        "imageID": "",
        "containerID": container_id(container),
        "started": running and container.id in facts.started,
        **_resources(facts.allocated.get(spec.name)),
        **_devices(facts.devices.get(spec.name)),
    }


def _devices(held: list[dict[str, Any]] | None) -> Status:
    return {"allocatedResourcesStatus": held} if held else {}


def _resources(allocated: Mapping[str, Any] | None) -> Status:
    """What a container is allocated, and so runs with."""
    if not allocated:
        return {}
    requests = allocated.get("requests")
    shown: Status = {"resources": dict(allocated)}
    return shown | ({"allocatedResources": requests} if requests else {})


def container_id(container: RuntimeContainer) -> str:
    """The id as a status shows it."""
    return f"numalign://{container.id}"


def _of_none(spec: ContainerSpec, waiting: Waiting, before: Status | None) -> Status:
    status: Status = {
        "name": spec.name,
        "state": {"waiting": _waiting(waiting)},
        "lastState": {},
        "ready": False,
        "restartCount": 0,
        "image": spec.image,
        "imageID": "",
        "started": False,
    }
    if before is None or "waiting" in (before.get("state") or {}):
        return status
    if "terminated" in before["state"]:
        # It ended, and the runtime has forgotten it since.
        return before
    status["restartCount"] = before.get("restartCount", 0)
    status["lastState"] = {
        "terminated": {
            "exitCode": UNKNOWN_EXIT,
            "reason": UNKNOWN_REASON,
            "message": LOST,
            **({"containerID": before["containerID"]} if before.get("containerID") else {}),
        }
    }
    return status


def _state(container: RuntimeContainer, waiting: Waiting) -> Status:
    match container.phase:
        case ContainerPhase.RUNNING:
            return {"running": {"startedAt": rfc3339(container.started_at)}}
        case ContainerPhase.EXITED if waiting.reason in {INITIALIZING, CREATING}:
            return {"terminated": _terminated(container)}
        case _:
            return {"waiting": _waiting(waiting)}


def _waiting(waiting: Waiting) -> Status:
    return {"reason": waiting.reason} | ({"message": waiting.message} if waiting.message else {})


def _terminated(container: RuntimeContainer) -> Status:
    exit_code = UNKNOWN_EXIT if container.exit_code is None else container.exit_code
    status: Status = {
        "exitCode": exit_code,
        "reason": container.reason or ("Error" if exit_code else "Completed"),
        "containerID": container_id(container),
    }
    if container.message:
        status["message"] = container.message
    if container.started_at:
        status["startedAt"] = rfc3339(container.started_at)
    if container.finished_at:
        status["finishedAt"] = rfc3339(container.finished_at)
    return status


def _last_state(
    container: RuntimeContainer, containers: Sequence[RuntimeContainer], before: Status | None
) -> Status:
    for other in containers:
        if (other.name, other.attempt) == (container.name, container.attempt - 1):
            if other.phase is ContainerPhase.EXITED:
                return {"terminated": _terminated(other)}
            return {}
    if before is None:
        return {}
    if before.get("restartCount") == container.attempt:
        kept: Status = before.get("lastState") or {}
        return kept
    terminated = (before.get("state") or {}).get("terminated")
    return {} if terminated is None else {"terminated": terminated}


def with_ends(statuses: Mapping[str, list[Status]]) -> dict[str, list[Status]]:
    """The statuses of a pod that is over: containers without a final state get one (STAT-5)."""
    return {key: [_ended(status) for status in listed] for key, listed in statuses.items()}


def _ended(status: Status) -> Status:
    if "terminated" in status["state"]:
        return status
    end = (status.get("lastState") or {}).get("terminated") or {
        "exitCode": UNKNOWN_EXIT,
        "reason": UNKNOWN_REASON,
        "message": LOST,
    }
    return {**status, "state": {"terminated": end}, "ready": False, "started": False}

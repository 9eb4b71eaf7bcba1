"""The phase of a pod, from the statuses of its containers. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from numalign_agent.containers.spec import (
    ContainerKind,
    ContainerSpec,
    RestartPolicy,
    containers_of,
    restart_policy,
)
from numalign_agent.pod import AgentPod
from numalign_agent.status.container_statuses import Status, statuses_in

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"


def phase_of(pod: AgentPod, statuses: Mapping[str, Any], *, is_over: bool) -> str:
    """The phase. `is_over`: all containers are stopped for good."""
    by_name = {status["name"]: status for status in statuses_in(statuses)}
    policy = restart_policy(pod)
    specs = list(containers_of(pod))
    init = [s for s in specs if s.kind is not ContainerKind.APP]
    apps = [s for s in specs if s.kind is ContainerKind.APP]
    if policy is RestartPolicy.NEVER and any(_failed(spec, by_name) for spec in init):
        return FAILED
    count = Counter(_app_word(by_name.get(spec.name)) for spec in apps)
    have_run = count["running"] + count["stopped"] + count["succeeded"]
    if not have_run and any(_is_pending(spec, by_name) for spec in init):
        return PENDING
    if count["waiting"]:
        return PENDING
    stopped = count["stopped"] + count["succeeded"]
    if count["running"]:
        return PENDING if count["unknown"] else RUNNING
    if stopped and not count["unknown"]:
        return _phase_of_stopped(policy, failed=count["stopped"] > 0, is_over=is_over, pod=pod)
    return PENDING


def _phase_of_stopped(policy: RestartPolicy, *, failed: bool, is_over: bool, pod: AgentPod) -> str:
    if is_over and not pod.is_static:
        return FAILED if failed else SUCCEEDED
    if policy is RestartPolicy.ALWAYS:
        return RUNNING
    if not failed:
        return SUCCEEDED
    return FAILED if policy is RestartPolicy.NEVER else RUNNING


def _app_word(status: Status | None) -> str:
    state = {} if status is None else status["state"]
    if "running" in state:
        return "running"
    if "terminated" in state:
        return "stopped" if state["terminated"]["exitCode"] else "succeeded"
    if "waiting" in state:
        ended = (status or {}).get("lastState", {}).get("terminated")
        return "waiting" if ended is None else "stopped"
    return "unknown"


def _failed(spec: ContainerSpec, by_name: Mapping[str, Status]) -> bool:
    """Whether an init container that is not started again has failed."""
    status = by_name.get(spec.name)
    if status is None or spec.kind is ContainerKind.SIDECAR:
        return False
    ended = status["state"].get("terminated") or (
        status["lastState"].get("terminated") if "waiting" in status["state"] else None
    )
    return ended is not None and ended["exitCode"] != 0


def _is_pending(spec: ContainerSpec, by_name: Mapping[str, Status]) -> bool:
    """Whether an init container still keeps the app containers from starting."""
    status = by_name.get(spec.name)
    if status is None:
        return True
    if spec.kind is ContainerKind.SIDECAR:
        return not (("running" in status["state"]) and status["started"])
    ended = status["state"].get("terminated")
    return ended is None or ended["exitCode"] != 0

"""Runners of `features` and `sysctl` records."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from numalign.admission.handlers.app_armor import decide_app_armor
from numalign.admission.handlers.declared_features import decide_declared_features
from numalign.admission.handlers.node_shutdown import (
    decide_node_shutdown,
    grace_groups,
    group_of,
)
from numalign.admission.handlers.pod_features import decide_pod_features
from numalign.admission.handlers.sysctl import allowlist, decide_sysctls, safe_sysctls
from numalign.errors import ConfigError
from numalign.replay.recordings import Json, RecordingError
from numalign.replay.unit.admission.objects import pod_of, verdict_answer


def features_answer(record: Json) -> Json:
    """The verdict of the handler that the record names."""
    given = record["input"]
    if given["handler"] not in _HANDLERS:
        raise RecordingError(f"unknown handler {given['handler']}")
    return _HANDLERS[given["handler"]](given)


def sysctl_answer(record: Json) -> Json:
    """The safe names, what is wrong with the list, and the verdict on the pod if there is one."""
    given = record["input"]
    safe = safe_sysctls(given["kernel_version"])
    answer: Json = {"safe": list(safe), "error": None}
    try:
        allowed = allowlist((*safe, *given["allowed_unsafe_sysctls"]))
    except ConfigError as error:
        return answer | {"error": str(error)}
    if "pod" in given:
        answer |= verdict_answer(decide_sysctls(pod_of(given["pod"]), allowed))
    return answer


def _app_armor(given: Json) -> Json:
    return verdict_answer(decide_app_armor(pod_of(given["pod"]), given["host_apparmor"]))


def _pod_features(given: Json) -> Json:
    enabled = given["pod_level_resources_enabled"]
    return verdict_answer(decide_pod_features(pod_of(given["pod"]), enabled))


def _declared_features(given: Json) -> Json:
    declared = given["node_features"] or ()
    return verdict_answer(decide_declared_features(pod_of(given["pod"]), declared))


def _node_shutdown(given: Json) -> Json:
    groups = grace_groups(
        given["shutdown_grace_period_s"],
        given["shutdown_grace_period_critical_pods_s"],
        [(p, grace) for p, grace in given["shutdown_grace_period_by_pod_priority"]],
    )
    placed: list[list[int]] = [[] for _ in groups]
    for index, priority in enumerate(given["pod_priorities"] if groups else ()):
        placed[group_of(priority, groups)].append(index)
    return verdict_answer(decide_node_shutdown(given["shutting_down"], groups)) | {
        "active": bool(groups),
        "groups": [
            {"priority": group.priority, "grace_s": group.grace, "pods": pods}
            for group, pods in zip(groups, placed, strict=True)
        ],
    }


_HANDLERS: Mapping[str, Callable[[Json], Json]] = {
    "apparmor": _app_armor,
    "pod_features": _pod_features,
    "node_declared_features": _declared_features,
    "node_shutdown": _node_shutdown,
}

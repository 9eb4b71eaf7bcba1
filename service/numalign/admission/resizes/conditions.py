"""What a pod's status and its events say about a resize (RSZ-6, RES-3)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.allocation import section_of
from numalign.kubelet_files.allocation_checkpoint import AllocatedResources
from numalign.model.pod import Container
from numalign.model.quantity import Quantity

PENDING, IN_PROGRESS = "PodResizePending", "PodResizeInProgress"
INFEASIBLE, DEFERRED = "Infeasible", "Deferred"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeCondition:
    """A condition that is True; `since` is when it came up, in seconds."""

    type: str
    generation: int
    since: float
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeEvent:
    """An event on a pod."""

    pod_uid: str
    type: str
    reason: str
    text: str


def started_event(pod: AdmitPod) -> ResizeEvent:
    """The desired resources are granted."""
    return ResizeEvent(
        pod_uid=pod.uid,
        type="Normal",
        reason="ResizeStarted",
        text=f"Pod resize started: {_summary(pod)}",
    )


def pending_event(pod: AdmitPod, condition: ResizeCondition, reason: str) -> ResizeEvent:
    """The desired resources are not granted; `reason` is the refusing handler's."""
    return ResizeEvent(
        pod_uid=pod.uid,
        type="Warning",
        reason=f"Resize{condition.reason}",
        text=f"Pod resize {reason}: {_summary(pod, condition.message)}",
    )


def _summary(pod: AdmitPod, error: str = "") -> str:
    """The desired resources, the generation and the error, as one line of JSON."""
    shown: dict[str, Any] = {}
    for key, containers in (
        ("initContainers", pod.pod.init_containers),
        ("containers", pod.pod.containers),
    ):
        if containers:
            shown[key] = [_container(pod, container) for container in containers]
    if pod.generation:
        shown["generation"] = pod.generation
    if error:
        shown["error"] = error
    return json.dumps(shown, separators=(",", ":"), ensure_ascii=False)


def _container(pod: AdmitPod, container: Container) -> dict[str, Any]:
    return {"name": container.name, "resources": _section(section_of(pod, container))}


def _section(resources: AllocatedResources) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for key, amounts in (("limits", resources.limits), ("requests", resources.requests)):
        if amounts:
            shown[key] = _amounts(amounts)
    if resources.claims:
        shown["claims"] = [
            {"name": claim.name} | ({"request": claim.request} if claim.request else {})
            for claim in resources.claims
        ]
    return shown


def _amounts(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: amounts[name].canonical() for name in sorted(amounts)}

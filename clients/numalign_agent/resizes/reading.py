"""Pods and answers in the terms of the resize rules. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.verdict import Verdict
from numalign.admission.pod_messages import admit_pod
from numalign.admission.resizes.conditions import DEFERRED, INFEASIBLE, PENDING, ResizeCondition
from numalign.errors import InvalidInput
from numalign.kube.pod_decode import read_pod
from numalign.kube.pod_json import pod_from_json
from numalign.kubelet_files.allocation_checkpoint import AllocatedResources, PodAllocation
from numalign.model.quantity import Quantity
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb
from numalign_agent.pod import AgentPod
from numalign_agent.status.conditions import condition_in
from numalign_agent.status.times import rfc3339, seconds_of

Condition = dict[str, Any]


def desired(pod: AgentPod) -> AdmitPod | None:
    """The pod as its source wants it; None for one that cannot be read."""
    try:
        message = pod_from_json(pod.document)
        read, violations = read_pod(message)
        return None if violations else admit_pod(message, read)
    except InvalidInput:
        return None


def verdict_of(answer: ad.AdmitResponse) -> Verdict:
    """What Admission said to a resize, as the chain's verdict (RSZ-6)."""
    if answer.verdict == pb.VERDICT_ADMITTED:
        return Verdict(True)
    return Verdict(False, answer.handler_reason or answer.reason, answer.message)


def restored(pod: AgentPod) -> ResizeCondition | None:
    """The pending condition that the pod's own status has (ADD-2)."""
    found = condition_in(pod.status, PENDING)
    if found is None or found.get("reason") not in {INFEASIBLE, DEFERRED}:
        return None
    since = found.get("lastTransitionTime")
    return ResizeCondition(
        type=PENDING,
        generation=int(found.get("observedGeneration") or 0),
        since=seconds_of(since) if since else 0.0,
        reason=str(found["reason"]),
        message=str(found.get("message") or ""),
    )


def condition_document(condition: ResizeCondition, probed_at: float) -> Condition:
    """A condition as a pod's status has it."""
    document: Condition = {
        "type": condition.type,
        "status": "True",
        "lastTransitionTime": rfc3339(condition.since),
        "lastProbeTime": rfc3339(probed_at),
    }
    if condition.generation:
        document["observedGeneration"] = condition.generation
    if condition.reason:
        document |= {"reason": condition.reason, "message": condition.message}
    return document


def shown(allocation: PodAllocation) -> dict[str, Mapping[str, Any]]:
    """What containers are allocated, as their statuses show it, by name."""
    return {name: _section(resources) for name, resources in allocation.containers.items()}


def with_allocated(pod: AgentPod, allocation: PodAllocation) -> AgentPod:
    """The pod with the amounts that it is allocated instead of those that it asks for (RES-4)."""

    def given(document: Condition) -> Condition:
        resources = allocation.containers.get(document.get("name") or "")
        return document if resources is None else _with_amounts(document, resources)

    spec = {**pod.spec}
    for field in ("initContainers", "containers"):
        if field in spec:
            spec[field] = [given(document) for document in spec[field] or ()]
    if allocation.pod_level is not None:
        spec = _with_amounts(spec, allocation.pod_level)
    return AgentPod({**pod.document, "spec": spec})


def _with_amounts(document: Mapping[str, Any], resources: AllocatedResources) -> Condition:
    section = {
        key: value
        for key, value in (document.get("resources") or {}).items()
        if key not in {"limits", "requests"}
    }
    return {**document, "resources": {**section, **_section(resources)}}


def _section(resources: AllocatedResources) -> dict[str, dict[str, str]]:
    return {
        key: {name: amount.canonical() for name, amount in sorted(amounts.items())}
        for key, amounts in (("limits", resources.limits), ("requests", resources.requests))
        if amounts
    }


def changed_amounts(before: AgentPod, after: AgentPod) -> list[tuple[str, str, str]]:
    """Resource, requirement and operation of every amount that a container's change has (HND-2)."""
    old, new = desired(before), desired(after)
    if old is None or new is None:
        return []
    was = {container.name: container.resources for container in old.pod.all_containers()}
    changes = []
    for container in new.pod.all_containers():
        earlier = was.get(container.name)
        if earlier is None:
            continue
        for requirement in ("requests", "limits"):
            for resource in ("cpu", "memory"):
                operation = _operation(
                    getattr(earlier, requirement).get(resource),
                    getattr(container.resources, requirement).get(resource),
                )
                if operation:
                    changes.append((resource, requirement, operation))
    return changes


def _operation(before: Quantity | None, after: Quantity | None) -> str:
    if before is None:
        return "" if after is None else "add"
    if after is None:
        return "remove"
    if after == before:
        return ""
    return "increase" if after > before else "decrease"

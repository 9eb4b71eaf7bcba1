"""Runners of `allocation` records: feasibility, overlay, additions and the resize queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.allocation import ResizeGates, allocation_of, overlaid
from numalign.admission.handlers.node_view import NodeView
from numalign.admission.handlers.predicates import NO_DEVICES, decide_predicates
from numalign.admission.handlers.resize_feasibility import ResizeFacts, decide_resize
from numalign.admission.handlers.swap import SwapBehavior
from numalign.admission.handlers.verdict import ADMITTED, Verdict
from numalign.admission.pod_messages import with_resources
from numalign.admission.resizes.conditions import ResizeCondition, ResizeEvent
from numalign.admission.resizes.evaluation import ResizeState, evaluated, queued
from numalign.kube.pod_json import pod_to_json
from numalign.kubelet_files.allocation_checkpoint import AllocatedResources, PodAllocation
from numalign.model.feature_gates import FeatureGates
from numalign.replay.recordings import Json, RecordingError
from numalign.replay.unit.admission.objects import (
    node_of,
    pod_message,
    pod_of,
    verdict_answer,
)


def allocation_answer(record: Json) -> Json:
    """What the record's kind asks for."""
    given = record["input"]
    if given["kind"] not in _KINDS:
        raise RecordingError(f"unknown kind {given['kind']}")
    return _KINDS[given["kind"]](given)


def allocation_expected(record: Json) -> Json:
    """What is recorded; a pod is read and shown again, so that only its meaning counts."""
    expected: Json = record["expected"]
    if record["input"]["kind"] != "overlay":
        return expected
    return expected | {"pod": pod_to_json(pod_message(expected["pod"]))}


def _feasibility(given: Json) -> Json:
    pod = pod_of(given["pod"])
    if given["operation"] == "add":
        return verdict_answer(ADMITTED)
    return verdict_answer(_decide_resize(given, pod, _allocations(given).get(pod.uid)))


def _overlay(given: Json) -> Json:
    message = pod_message(given["pod"])
    pod = pod_of(given["pod"])
    shown, changed = overlaid(pod, _allocations(given).get(pod.uid), _resize(given))
    return {"pod": pod_to_json(with_resources(message, shown)), "changed": changed}


def _add(given: Json) -> Json:
    allocations, resize = _allocations(given), _resize(given)
    pod, _ = overlaid(
        pod_of(given["pod"]), allocations.get(given["pod"]["metadata"]["uid"]), resize
    )
    others = [
        overlaid(other, allocations.get(other.uid), resize)[0]
        for other in map(pod_of, given["active_pods"])
        if other.uid != pod.uid
    ]
    verdict = _decide_fit(given, pod, others)
    if verdict.admit:
        allocations[pod.uid] = allocation_of(pod, resize)
    return verdict_answer(verdict) | {"allocation": _shown(allocations.get(pod.uid))}


def _retry(given: Json) -> Json:
    resize, gates = _resize(given), _gates(given)
    pods = {pod.uid: pod for pod in map(pod_of, given["active_pods"])}
    state = ResizeState(allocations=_allocations(given))
    for uid in given["push"]:
        state = queued(state, uid, pods, resize, gates)

    def ask(pod: AdmitPod, others: Sequence[AdmitPod], allocation: PodAllocation | None) -> Verdict:
        verdict = _decide_resize(given, pod, allocation)
        return _decide_fit(given, pod, others) if verdict.admit else verdict

    retries = []
    for turn in range(given["retries"]):
        outcome = evaluated(
            state, pods, ask, turn, resize, sources_ready=given.get("sources_ready", True)
        )
        state = outcome.state
        retries.append(
            {
                "conditions": {uid: _conditions(state, uid) for uid in pods},
                "allocations": {uid: _shown(state.allocations.get(uid)) for uid in pods},
                "events": [_event(event) for event in outcome.events],
                "synced": list(outcome.synced),
                "has_pending": bool(state.queue),
            }
        )
    return {"retries": retries}


_KINDS: Mapping[str, Callable[[Json], Json]] = {
    "feasibility": _feasibility,
    "overlay": _overlay,
    "add": _add,
    "retry": _retry,
}


def _decide_resize(given: Json, pod: AdmitPod, allocation: PodAllocation | None) -> Verdict:
    swap: Mapping[str, str] = given.get("swap_behavior", {})
    facts = ResizeFacts(
        cpu_manager_policy=given["cpu_manager_policy"],
        memory_manager_policy=given["memory_manager_policy"],
        swap_behavior=lambda _, container: swap.get(container.name, SwapBehavior.NONE),
    )
    return decide_resize(pod, allocation, facts, _resize(given), _gates(given))


def _decide_fit(given: Json, pod: AdmitPod, others: Sequence[AdmitPod]) -> Verdict:
    node: NodeView | None = node_of(given["node"])
    return decide_predicates(pod, others, node, NO_DEVICES, _gates(given)).verdict


def _allocations(given: Json) -> dict[str, PodAllocation]:
    resize = _resize(given)
    return {pod.uid: allocation_of(pod, resize) for pod in map(pod_of, given["allocated"])}


def _resize(given: Json) -> ResizeGates:
    off = given.get("features_off", ())
    return ResizeGates(
        in_place="InPlacePodVerticalScaling" not in off,
        init_containers="InPlacePodVerticalScalingInitContainers" not in off,
        pod_level="InPlacePodLevelResourcesVerticalScaling" not in off,
    )


def _gates(given: Json) -> FeatureGates:
    return FeatureGates(
        pod_level_resources="PodLevelResources" not in given.get("features_off", ())
    )


def _conditions(state: ResizeState, uid: str) -> list[Json]:
    return [
        _condition(condition)
        for condition in (state.pending.get(uid), state.in_progress.get(uid))
        if condition is not None
    ]


def _condition(condition: ResizeCondition) -> Json:
    return {
        "type": condition.type,
        "status": "True",
        "reason": condition.reason,
        "message": condition.message,
        "observedGeneration": condition.generation,
    }


def _event(event: ResizeEvent) -> Json:
    return {
        "uid": event.pod_uid,
        "type": event.type,
        "reason": event.reason,
        "text": event.text,
    }


def _shown(allocation: PodAllocation | None) -> Json:
    if allocation is None:
        return {"containers": {}, "pod": None}
    return {
        "containers": {name: _section(of) for name, of in allocation.containers.items()},
        "pod": None if allocation.pod_level is None else _section(allocation.pod_level),
    }


def _section(resources: AllocatedResources) -> Json:
    shown: Json = {}
    for key, amounts in (("limits", resources.limits), ("requests", resources.requests)):
        if amounts:
            shown[key] = {name: quantity.canonical() for name, quantity in amounts.items()}
    if resources.claims:
        shown["claims"] = [{"name": claim.name} for claim in resources.claims]
    return shown

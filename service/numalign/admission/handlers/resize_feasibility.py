"""The resize feasibility handler: resizes that this node can never grant (RSZ-1 to RSZ-5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.allocation import ResizeGates, is_resizable, overlaid
from numalign.admission.handlers.swap import SwapBehavior
from numalign.admission.handlers.verdict import ADMITTED, Verdict, rejected
from numalign.kubelet_files.allocation_checkpoint import PodAllocation
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Container
from numalign.model.qos import is_guaranteed
from numalign.model.quoting import quoted

REASON = "Infeasible"

_CPU_STATIC, _MEMORY_STATIC = "static", "Static"

_DISABLED = "InPlacePodVerticalScaling is disabled"
_SWAP = "In-place resize of containers with swap is not supported."
_PINNED = "Resize is infeasible for Guaranteed Pods alongside"
_PINNED_CPUS = f"{_PINNED} CPU Manager policy {quoted(_CPU_STATIC)}"
_PINNED_MEMORY = f"{_PINNED} Memory Manager policy {quoted(_MEMORY_STATIC)}"

_DETAILS = {
    _DISABLED: "feature_gate_off",
    _SWAP: "swap_limitation",
    _PINNED_CPUS: "guaranteed_pod_cpu_manager_static_policy",
    _PINNED_MEMORY: "guaranteed_pod_memory_manager_static_policy",
}
OTHER_DETAIL = "other"


def reason_detail(message: str) -> str:
    """The label that counts an infeasible resize, by its message (RSZ-6).

    `other` for what the kubelet does not refuse.
    """
    return _DETAILS.get(message, OTHER_DETAIL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeFacts:
    """Policies of the managers, and how a container of a pod may swap (RSZ-3)."""

    cpu_manager_policy: str
    memory_manager_policy: str
    swap_behavior: Callable[[AdmitPod, Container], str]


def decide_resize(
    pod: AdmitPod,
    allocation: PodAllocation | None,
    facts: ResizeFacts,
    resize: ResizeGates,
    gates: FeatureGates,
) -> Verdict:
    """Whether the desired pod could ever replace what was allocated.

    For operation `resize` only: an addition is always admitted here (RSZ-1).
    """
    if not resize.in_place:
        return rejected(REASON, _DISABLED)
    allocated, _ = overlaid(pod, allocation, resize)
    if _changes_swapped_memory(pod, allocated, facts):
        return rejected(REASON, _SWAP)
    if is_guaranteed(pod.pod, gates):
        for resource, is_barred, message in (
            (
                "cpu",
                facts.cpu_manager_policy == _CPU_STATIC and not resize.exclusive_cpus,
                _PINNED_CPUS,
            ),
            (
                "memory",
                facts.memory_manager_policy == _MEMORY_STATIC and not resize.exclusive_memory,
                _PINNED_MEMORY,
            ),
        ):
            if is_barred and _changes_request(pod, allocation, resource, resize):
                return rejected(REASON, message)
    return ADMITTED


def _changes_swapped_memory(pod: AdmitPod, allocated: AdmitPod, facts: ResizeFacts) -> bool:
    """Whether memory changes in a container that may swap and is not restarted for it (RSZ-3)."""
    return any(
        before.resources.requests.get("memory") != after.resources.requests.get("memory")
        and after.name not in pod.restart_on_memory
        and (
            facts.swap_behavior(allocated, before) != SwapBehavior.NONE
            or facts.swap_behavior(pod, after) != SwapBehavior.NONE
        )
        for before, after in zip(
            allocated.pod.all_containers(), pod.pod.all_containers(), strict=True
        )
    )


def _changes_request(
    pod: AdmitPod, allocation: PodAllocation | None, resource: str, resize: ResizeGates
) -> bool:
    """Whether a resizable container asks for another amount than it was given (RSZ-5).

    A container without an entry was given nothing.
    """
    given = {} if allocation is None else allocation.containers
    for container in pod.pod.all_containers():
        if is_resizable(container, resize):
            entry = given.get(container.name)
            before = None if entry is None else entry.requests.get(resource)
            if before != container.resources.requests.get(resource):
                return True
    return False

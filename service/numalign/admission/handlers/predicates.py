"""The predicate handler: does the pod belong and fit on this node (PRED-1 to PRED-12).

It puts the checks of the neighbouring files in the kubelet's order. Nothing is ended here:
victims are named, and the pod counts as admitted for them (PRE-9, DES-5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.failures import NODE_AFFINITY, Failure, verdict_of
from numalign.admission.handlers.fit import failures_of
from numalign.admission.handlers.node_usage import (
    NodeUsage,
    counted,
    usage_of,
    whole,
    without_unknown,
)
from numalign.admission.handlers.node_view import NodeView
from numalign.admission.handlers.operating_system import OS_LABEL, decide_operating_system
from numalign.admission.handlers.preemption import preempt
from numalign.admission.handlers.verdict import Verdict, rejected
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod_resources import pod_requests

NO_NODE = rejected("InvalidNodeInfo", "Kubelet cannot get node info.")

_UNEXPECTED = "UnexpectedAdmissionError"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCounts:
    """Devices allocated per resource, and whether the pod under test holds any (PRED-4)."""

    allocated: Mapping[str, int]
    pod_holds_some: bool = False


NO_DEVICES = DeviceCounts(allocated={})


@dataclass(frozen=True, slots=True)
class Fit:
    """The handler's answer: the verdict, what failed before preemption, and pods to end."""

    verdict: Verdict
    failures: tuple[Failure, ...] = ()
    victims: tuple[AdmitPod, ...] = ()


def decide_predicates(
    pod: AdmitPod,
    others: Sequence[AdmitPod],
    node: NodeView | None,
    devices: DeviceCounts,
    gates: FeatureGates,
    *,
    host_os: str = "linux",
    fresh_node: Callable[[], NodeView | None] | None = None,
    check_groups_policy: bool = True,
    usage: NodeUsage | None = None,
) -> Fit:
    """Whether the node takes the pod beside `others` (active, without the pod itself).

    `node` None means that it cannot be read. `fresh_node` reads it again, once, where node
    affinity alone fails (PRED-10); it gives None where it cannot, and the first look stands.
    `check_groups_policy` is off for a kubelet that does not know the policy. `usage` is that of
    `others`, for a caller who has it already.
    """
    if node is None:
        return Fit(NO_NODE)
    verdict = decide_operating_system(pod, node, host_os, check_groups_policy)
    if not verdict.admit:
        return Fit(verdict)
    if usage is None:
        usage = usage_of(others, gates)
    failures = _failures(pod, usage, _of_system(node, host_os), devices, gates, fresh_node)
    outcome = preempt(pod, failures, [*others, pod], gates)
    if outcome.error:
        text = (
            f"Unexpected error while attempting to recover from admission failure: {outcome.error}"
        )
        return Fit(rejected(_UNEXPECTED, text), failures)
    return Fit(verdict_of(outcome.failures), failures, outcome.victims)


def _failures(
    pod: AdmitPod,
    usage: NodeUsage,
    node: NodeView,
    devices: DeviceCounts,
    gates: FeatureGates,
    fresh_node: Callable[[], NodeView | None] | None,
) -> tuple[Failure, ...]:
    allocatable = _allocatable(node)
    if devices.pod_holds_some:
        for name, count in devices.allocated.items():
            allocatable[name] = max(allocatable.get(name, 0), count)
    request = counted(pod_requests(without_unknown(pod.pod, allocatable), gates))
    failures = failures_of(pod, request, node, allocatable, usage)
    if not failures or any(failure is not NODE_AFFINITY for failure in failures):
        return failures
    fresh = None if fresh_node is None else fresh_node()
    if fresh is None:
        return failures
    # The raise for devices is lost with the old node, and unknown resources are not looked
    # for again: so does the kubelet.
    return failures_of(pod, request, fresh, _allocatable(fresh), usage)


def _allocatable(node: NodeView) -> dict[str, int]:
    return {name: whole(name, quantity) for name, quantity in node.allocatable.items()}


def _of_system(node: NodeView, host_os: str) -> NodeView:
    """The node with the label of the system that it really runs (PRED-2)."""
    if not node.labels or node.labels.get(OS_LABEL) == host_os:
        return node
    return replace(node, labels={**node.labels, OS_LABEL: host_os})

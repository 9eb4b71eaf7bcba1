"""Whether a pod fits on a node: resources, affinity, name, ports, taints (PRED-8, PRED-9)."""

from __future__ import annotations

from collections.abc import Mapping

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.failures import (
    NODE_AFFINITY,
    NODE_NAME,
    NODE_PORTS,
    TAINT_TOLERATION,
    Failure,
    InsufficientResource,
)
from numalign.admission.handlers.host_ports import in_conflict
from numalign.admission.handlers.importance import is_static
from numalign.admission.handlers.node_affinity import selects
from numalign.admission.handlers.node_usage import PLAIN, PODS, NodeUsage, is_scalar
from numalign.admission.handlers.node_view import NodeView
from numalign.admission.handlers.tolerations import tolerates_running


def failures_of(
    pod: AdmitPod,
    request: Mapping[str, int],
    node: NodeView,
    allocatable: Mapping[str, int],
    usage: NodeUsage,
) -> tuple[Failure, ...]:
    """Everything that keeps the pod off the node, in the kubelet's order; no check stops another.

    `request` and `allocatable` are whole numbers, CPU in thousandths.
    """
    failures: list[Failure] = list(_lacking(request, allocatable, usage))
    if not selects(pod, node):
        failures.append(NODE_AFFINITY)
    if pod.node_name and pod.node_name != node.name:
        failures.append(NODE_NAME)
    if in_conflict(pod.host_ports, usage.host_ports):
        failures.append(NODE_PORTS)
    if not is_static(pod) and not tolerates_running(pod.tolerations, node.taints):
        failures.append(TAINT_TOLERATION)
    return tuple(failures)


def _lacking(
    request: Mapping[str, int], allocatable: Mapping[str, int], usage: NodeUsage
) -> list[InsufficientResource]:
    """The resources that the node has too little of (PRED-8).

    The kubelet takes scalar resources in any order; here they are sorted by name.
    """
    lacking = []
    if usage.pods + 1 > allocatable.get(PODS, 0):
        lacking.append(InsufficientResource(PODS, 1, usage.pods, allocatable.get(PODS, 0)))
    scalars = sorted(filter(is_scalar, request))
    for name in (*PLAIN, *scalars):
        wanted, used, there = (
            request.get(name, 0),
            usage.requested.get(name, 0),
            allocatable.get(name, 0),
        )
        if wanted > 0 and wanted > there - used:
            lacking.append(InsufficientResource(name, wanted, used, there))
    return lacking

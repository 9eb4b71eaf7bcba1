"""What a chain is shown of the pods on the node (ADM-6)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from numalign.admission.chain.question import NodeFacts, Operation, Question
from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.allocation import ResizeGates, overlaid
from numalign.kubelet_files.allocation_checkpoint import PodAllocation


def question(
    pod: AdmitPod,
    operation: Operation,
    active: Iterable[AdmitPod],
    allocations: Mapping[str, PodAllocation],
    facts: NodeFacts,
    resize: ResizeGates,
    *,
    preempted: Collection[str] = (),
) -> Question:
    """The question about `pod`, as it came from its source, among the active pods.

    For an addition the pod is shown with what it was admitted with before, for a resize as it
    is wanted. Pods in `preempted` were named as victims before: they do not count any more and
    are not named again, whether or not they could be ended (PRE-9, PRE-10).
    """
    allocation = allocations.get(pod.uid)
    return Question(
        pod=overlaid(pod, allocation, resize)[0] if operation is Operation.ADD else pod,
        others=tuple(
            overlaid(other, allocations.get(other.uid), resize)[0]
            for other in active
            if other.uid != pod.uid and other.uid not in preempted
        ),
        operation=operation,
        allocation=allocation,
        facts=facts,
    )

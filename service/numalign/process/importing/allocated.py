"""The pods of a list with the resources that their kubelet allocated to them (ALLOC-6).

Separate from what pods hold: a list from the API server says what pods want, and a resize of
some may still be pending.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from numalign.admission.handlers.allocation import overlaid, resize_gates
from numalign.admission.pod_messages import admit_pod, with_resources
from numalign.errors import StateError
from numalign.kube.pod_decode import parse_pod, pod_from_message
from numalign.kubelet_files.allocation_checkpoint import read_allocation_checkpoint
from numalign.model.feature_gates import FeatureGates
from numalign.process.importing.checkpoints import state_text

ALLOCATION_FILE = Path("allocated_pods_state")


@dataclass(frozen=True, slots=True)
class AllocatedPods:
    """The pods to record, and a line for each that waits for a resize; or what is left out."""

    pods: tuple[bytes, ...]
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def allocated_pods(root: Path, pods: Iterable[bytes], gates: FeatureGates) -> AllocatedPods:
    """`pods` as `allocated_pods_state` below `root` says (ALLOC-2 to ALLOC-8).

    Without the file they stand as they are: no kubelet has written it before a pod was admitted.
    Raises InvalidInput for bytes that are no pod.
    """
    given = tuple(pods)
    path = root / ALLOCATION_FILE
    if not path.exists():
        return AllocatedPods(given)
    try:
        entries = read_allocation_checkpoint(state_text(path)).pods
    except StateError as error:
        return AllocatedPods(given, left_out=(f"allocated resources: {path}: {error}",))
    shown = []
    notes = []
    for data in given:
        message = parse_pod(data)
        pod = admit_pod(message, pod_from_message(message))
        allocated, differs = overlaid(pod, entries.get(pod.pod.uid), resize_gates(gates))
        shown.append(with_resources(message, allocated).SerializeToString() if differs else data)
        if differs:
            notes.append(
                f"pod {pod.uid}: recorded with the resources that the kubelet allocated; a resize "
                "is pending"
            )
    return AllocatedPods(tuple(shown), tuple(notes))

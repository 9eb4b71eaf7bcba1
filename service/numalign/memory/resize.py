"""Resizing a running pod in place: memory that is booked on NUMA nodes cannot change."""

from __future__ import annotations

from numalign.memory import policy_static
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Pod
from numalign.model.qos import is_guaranteed

INFEASIBLE = "Infeasible"
"""Reason of a refused resize."""


def memory_resize_refusal(policy: str, pod: Pod, gates: FeatureGates) -> str | None:
    """Why a change of the pod's memory is refused as `INFEASIBLE`; None if it is not (MEM-55)."""
    if (
        policy == policy_static.NAME
        and not gates.in_place_pod_vertical_scaling_exclusive_memory
        and is_guaranteed(pod, gates)
    ):
        return (
            "Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "
            f'"{policy_static.NAME}"'
        )
    return None

"""Why a pod is refused, in the kubelet's words: reasons and messages of the Topology Manager.

The one place where these texts stand; users match on them. Rules TM-44, TM-48.
"""

from __future__ import annotations

from dataclasses import dataclass

from numalign.provider.values import AllocationFailure

TOPOLOGY_AFFINITY_ERROR = "TopologyAffinityError"
UNEXPECTED_ADMISSION_ERROR = "UnexpectedAdmissionError"

NOT_ALIGNED = "Resources cannot be allocated with Topology locality"
NOT_ALIGNED_POD_LEVEL_CONTAINER_SCOPE = (
    "Pod Scope pod with pod-level resources failed admission with a "
    "container-level topology manager"
)
NOT_ALIGNED_POD_LEVEL_POD_SCOPE = (
    "Pod Scope pod with pod-level resources failed admission under pod-scope topology manager"
)


@dataclass(frozen=True, slots=True)
class Rejection:
    """Reason and message of a refused admission."""

    reason: str
    message: str


def affinity_rejection(message: str) -> Rejection:
    """The policy did not admit the best hint; `message` is one of the NOT_ALIGNED texts."""
    return Rejection(TOPOLOGY_AFFINITY_ERROR, message)


def allocation_rejection(failure: AllocationFailure) -> Rejection:
    """A provider failed: a typed failure speaks for itself, any other is unexpected (TM-48)."""
    if failure.reason is not None:
        return Rejection(failure.reason, failure.message)
    return unexpected_rejection(failure.message)


def unexpected_rejection(error: str) -> Rejection:
    """An error without a reason of its own (TM-48)."""
    return Rejection(
        UNEXPECTED_ADMISSION_ERROR, f"Allocate failed due to {error}, which is unexpected"
    )

"""Whether a pod message leads to resource claims."""

from __future__ import annotations

from numalign.kube.core.v1 import core_pb2


def refers_to_claims(pod: core_pb2.Pod) -> bool:
    """Whether anything has to be prepared for the pod before it starts (DRA-18)."""
    return bool(
        pod.spec.resource_claims or pod.status.extended_resource_claim_status.resource_claim_name
    )

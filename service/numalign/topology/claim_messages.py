"""Claims that come with a pod, as hints of where their devices sit."""

from __future__ import annotations

from collections.abc import Iterable

from numalign.dra.messages import pod_claims
from numalign.dra.naming import named_claims
from numalign.dra.values import ClaimProblem
from numalign.topology.claim_hints import ClaimHints, PlacedDevice
from numalign.v1 import claims_pb2 as cl


def claim_hints(
    data: bytes, claims: Iterable[cl.FetchedClaim], machine: tuple[int, ...]
) -> ClaimHints | None:
    """The hints of the pod in `data`; None where none are wanted, or none can be told.

    A claim that could not be read, or is not allocated, says nothing of where its devices are;
    that it stands in the way of the pod is said when its claims are to be prepared.
    """
    placed = {
        claim.name: tuple(
            PlacedDevice(device.request, frozenset(device.numa_nodes))
            for device in claim.claim.allocation.devices
        )
        for claim in claims
        if claim.HasField("claim")
    }
    if not machine or not placed:
        return None
    pod = pod_claims(data)
    try:
        named_claims(pod)
    except ClaimProblem:
        return None
    return ClaimHints(pod, placed, machine)

"""Reasons and messages of a refusal, letter by letter."""

from __future__ import annotations

import pytest

from numalign.provider.values import AllocationFailure
from numalign.topology import reasons
from numalign.topology.reasons import Rejection, affinity_rejection, allocation_rejection


@pytest.mark.parametrize(
    ("message", "text"),
    [
        pytest.param(
            reasons.NOT_ALIGNED,
            "Resources cannot be allocated with Topology locality",
            id="normal",
        ),
        pytest.param(
            reasons.NOT_ALIGNED_POD_LEVEL_CONTAINER_SCOPE,
            "Pod Scope pod with pod-level resources failed admission with a container-level "
            "topology manager",
            id="pod-level-container-scope",
        ),
        pytest.param(
            reasons.NOT_ALIGNED_POD_LEVEL_POD_SCOPE,
            "Pod Scope pod with pod-level resources failed admission under pod-scope topology "
            "manager",
            id="pod-level-pod-scope",
        ),
    ],
)
def test_affinity(message: str, text: str) -> None:
    assert affinity_rejection(message) == Rejection("TopologyAffinityError", text)


@pytest.mark.parametrize(
    ("failure", "rejection"),
    [
        pytest.param(
            AllocationFailure("SMT Alignment Error: requested 1 cpus", "SMTAlignmentError"),
            Rejection("SMTAlignmentError", "SMT Alignment Error: requested 1 cpus"),
            id="typed",
        ),
        pytest.param(
            AllocationFailure("no devices"),
            Rejection(
                "UnexpectedAdmissionError",
                "Allocate failed due to no devices, which is unexpected",
            ),
            id="untyped",
        ),
    ],
)
def test_allocation(failure: AllocationFailure, rejection: Rejection) -> None:
    assert allocation_rejection(failure) == rejection

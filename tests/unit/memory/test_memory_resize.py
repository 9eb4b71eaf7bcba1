"""Resizing memory that is booked."""

from __future__ import annotations

import pytest
from tests.unit.memory.memory_builders import GATES, container, pod

from numalign.memory.resize import memory_resize_refusal
from numalign.model.feature_gates import FeatureGates

REFUSAL = 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"'


@pytest.mark.parametrize(
    ("policy", "qos", "gates", "expected"),
    [
        pytest.param("Static", "Guaranteed", GATES, REFUSAL, id="booked"),
        pytest.param("None", "Guaranteed", GATES, None, id="none-policy"),
        pytest.param("Static", "Burstable", GATES, None, id="not-guaranteed"),
        pytest.param(
            "Static",
            "Guaranteed",
            FeatureGates(in_place_pod_vertical_scaling_exclusive_memory=True),
            None,
            id="gate",
        ),
    ],
)
def test_refusal(policy: str, qos: str, gates: FeatureGates, expected: str | None) -> None:
    whole = pod("p", container("c", "1Gi"), qos=qos)

    assert memory_resize_refusal(policy, whole, gates) == expected

"""What a pod is allocated, read back from a record."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.admission.handlers.admit_pods import pod

from numalign.admission.handlers.allocation import ResizeGates, allocation_of
from numalign.admission.pod_messages import allocation_from_message
from numalign.errors import InvalidInput
from numalign.model.feature_gates import FeatureGates
from numalign.topology.allocated import resources_to_message
from numalign.v1 import types_pb2 as pb


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({}, id="nothing"),
        pytest.param(
            {"requests": {"cpu": "1500m", "memory": "1Gi"}, "limits": {"memory": "1.5Gi"}},
            id="amounts",
        ),
        pytest.param(
            {"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "1"}}}]},
            id="init-container",
        ),
        pytest.param({"resources": {}}, id="empty-pod-level"),
        pytest.param({"resources": {"limits": {"cpu": "2"}}}, id="pod-level"),
        pytest.param({"container": {"resources": {"claims": [{"name": "x"}]}}}, id="claims"),
    ],
)
def test_there_and_back(given: dict[str, Any]) -> None:
    """ALLOC-5."""
    asked = pod(**given)
    message = resources_to_message(asked.pod, FeatureGates())

    assert allocation_from_message(message, asked) == allocation_of(asked, ResizeGates())


def test_amounts_that_are_none() -> None:
    entry = pb.ContainerResources(container="c", amounts=pb.ResourceAmounts(requests={"cpu": "x"}))

    with pytest.raises(InvalidInput, match=r"c\[cpu\]"):
        allocation_from_message(pb.PodResources(containers=[entry]), pod())

"""What the memory provider counts (MEM-64..MEM-66)."""

from __future__ import annotations

import pytest
from tests.unit.memory.memory_builders import GATES, MANAGED_GATES, container, node, pod
from tests.unit.process.observed_world import samples

from numalign.memory.observer import MemoryObserver
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Pod
from numalign.provider.engine import Allocated
from numalign.provider.values import AllocationFailure
from numalign.telemetry.kubelet_metrics import MEMORY, RESOURCE_MANAGER
from numalign.telemetry.metrics import Metrics
from numalign.telemetry.resource_manager import ResourceManagerCounters

REQUESTS = "kubelet_memory_manager_pinning_requests_total"
ERRORS = "kubelet_memory_manager_pinning_errors_total"
PLAIN = pod("p", container("c", "1Gi", hugepages_2Mi="2Mi"))
LEVEL = pod("q", container("a", "1Gi"), container("b"), level={"cpu": "4", "memory": "4Gi"})


@pytest.mark.parametrize(
    ("which", "whole", "failed", "gates", "expected"),
    [
        pytest.param(PLAIN, False, False, GATES, {REQUESTS: 1}, id="without pod level"),
        pytest.param(
            PLAIN,
            False,
            False,
            MANAGED_GATES,
            {
                REQUESTS: 1,
                "resource_manager_allocations_total{resource_name=memory,source=node}": 2,
                "resource_manager_container_assignments"
                "{assignment_type=node_exclusive,resource_name=memory}": 1,
            },
            id="one per resource",
        ),
        pytest.param(
            PLAIN,
            False,
            True,
            MANAGED_GATES,
            {
                REQUESTS: 1,
                ERRORS: 1,
                "resource_manager_allocation_errors_total{resource_name=memory,source=node}": 1,
            },
            id="failed",
        ),
        pytest.param(
            LEVEL,
            True,
            False,
            MANAGED_GATES,
            {
                REQUESTS: 2,
                "resource_manager_allocations_total{resource_name=memory,source=pod}": 2,
                "resource_manager_container_assignments"
                "{assignment_type=pod_exclusive,resource_name=memory}": 1,
                "resource_manager_container_assignments"
                "{assignment_type=pod_shared,resource_name=memory}": 1,
            },
            id="pod as a whole",
        ),
    ],
)
def test_counters(
    which: Pod, whole: bool, failed: bool, gates: FeatureGates, expected: dict[str, float]
) -> None:
    metrics = Metrics((*MEMORY, *RESOURCE_MANAGER), enabled=True)
    managed = gates.pod_level_resource_managers
    shares = ResourceManagerCounters(metrics, "memory") if managed else None
    observer = MemoryObserver(gates, metrics, shares)
    state = node(2).state
    observer.started(state)
    outcome = Allocated(state, AllocationFailure("no") if failed else None)
    observer.allocated(state, outcome, which, None if whole else which.containers[0])
    observer.changed(state)
    assert {n: v for n, v in samples(metrics.text()).items() if v} == expected

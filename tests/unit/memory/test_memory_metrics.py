"""What one allocation adds to the counters."""

from __future__ import annotations

import pytest
from tests.unit.memory.memory_builders import (
    GATES,
    MANAGED_GATES,
    container,
    hint,
    node,
    pod,
)

from numalign.memory.metrics import NOTHING, MemoryCounts, count_allocate, count_allocate_pod
from numalign.model.pod import Pod

PLAIN = pod("p", container("c", "1Gi", hugepages_2Mi="2Mi"))
LEVEL = pod(
    "q",
    container("s", "1Gi", sidecar=True),
    container("i", init=True),
    container("a", "1Gi"),
    container("b"),
    level={"cpu": "4", "memory": "4Gi"},
)


@pytest.mark.parametrize(
    ("whole", "failed", "expected"),
    [
        pytest.param(
            PLAIN,
            False,
            MemoryCounts(pinning_requests=1, source="node", allocations=2, node_exclusive=1),
            id="one-allocation-per-resource",
        ),
        pytest.param(
            PLAIN,
            True,
            MemoryCounts(pinning_requests=1, pinning_errors=1, source="node", allocation_errors=1),
            id="failed",
        ),
        pytest.param(pod("p", container("c", "1Gi"), qos="Burstable"), False, NOTHING, id="qos"),
        pytest.param(
            pod("p", container("c", "1Gi"), level={"memory": "1Gi", "cpu": "1"}),
            False,
            NOTHING,
            id="barred",
        ),
    ],
)
def test_allocate(whole: Pod, failed: bool, expected: MemoryCounts) -> None:
    host = node(1, huge_2mi=4)

    assert count_allocate(host.state, whole, whole.container("c"), GATES, failed=failed) == expected


def test_a_container_that_has_its_blocks_counts_as_a_request_only() -> None:
    host = node(1, huge_2mi=4)
    assert host.allocate(PLAIN, "c", hint(0)) is None

    assert count_allocate(
        host.state, PLAIN, PLAIN.container("c"), GATES, failed=False
    ) == MemoryCounts(pinning_requests=1)


def test_allocate_pod() -> None:
    assert count_allocate_pod(LEVEL, MANAGED_GATES, failed=False) == MemoryCounts(
        pinning_requests=4, source="pod", allocations=4, pod_exclusive=2, pod_shared=2
    )
    assert count_allocate_pod(LEVEL, MANAGED_GATES, failed=True) == MemoryCounts(
        pinning_requests=1, pinning_errors=1, source="pod", allocation_errors=1
    )
    assert count_allocate_pod(pod("p", qos="Burstable"), MANAGED_GATES, failed=False) == NOTHING

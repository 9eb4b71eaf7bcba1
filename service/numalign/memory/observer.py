"""Adds up what the Static memory policy does, under the kubelet's names (MEM-64..MEM-66).

Separate from the numbers (`metrics`), which are pure. Every allocation counts that was
decided for keeps, also where the pod was refused in the end, as in the kubelet; a dry run
never gets here.
"""

from __future__ import annotations

from numalign.memory.metrics import count_allocate, count_allocate_pod
from numalign.memory.state import MemoryState
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod import Container, Pod
from numalign.provider.engine import Allocated
from numalign.telemetry.metrics import Metrics
from numalign.telemetry.resource_manager import ResourceManagerCounters


class MemoryObserver:
    """The `Observer` of the memory provider under the policy `Static`.

    `shares` is None unless pod-level resource managers are on: only then do these counters
    exist.
    """

    def __init__(
        self, gates: FeatureGates, metrics: Metrics, shares: ResourceManagerCounters | None
    ) -> None:
        self._gates = gates
        self._shares = shares
        self._requests = metrics.counter("kubelet_memory_manager_pinning_requests_total")
        self._errors = metrics.counter("kubelet_memory_manager_pinning_errors_total")

    def started(self, state: MemoryState) -> None:
        """Nothing: there are no gauges."""

    def allocated(
        self,
        before: MemoryState,
        outcome: Allocated[MemoryState],
        pod: Pod,
        container: Container | None,
    ) -> None:
        """Count one allocation."""
        failed = outcome.failure is not None
        if container is None:
            counts = count_allocate_pod(pod, self._gates, failed=failed)
        else:
            counts = count_allocate(before, pod, container, self._gates, failed=failed)
        if counts.pinning_requests:
            self._requests.inc(counts.pinning_requests)
        if counts.pinning_errors:
            self._errors.inc(counts.pinning_errors)
        if self._shares is not None:
            self._shares.allocated(counts.source, counts.allocations)
            self._shares.failed(counts.source, counts.allocation_errors)
            self._shares.assigned("node_exclusive", counts.node_exclusive)
            self._shares.assigned("pod_exclusive", counts.pod_exclusive)
            self._shares.assigned("pod_shared", counts.pod_shared)

    def changed(self, state: MemoryState) -> None:
        """Nothing: there are no gauges."""

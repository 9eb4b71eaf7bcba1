"""The counters that the CPU and memory providers share, each under its own resource name.

They exist only where pod-level resource managers are on (CPU section 18, MEM-66).
"""

from __future__ import annotations

from numalign.telemetry.metrics import Metrics


class ResourceManagerCounters:
    """The counters of one resource (`cpu` or `memory`). Zero adds no series."""

    def __init__(self, metrics: Metrics, resource: str) -> None:
        self._resource = resource
        self._allocations = metrics.counter("resource_manager_allocations_total")
        self._errors = metrics.counter("resource_manager_allocation_errors_total")
        self._assignments = metrics.counter("resource_manager_container_assignments")

    def allocated(self, source: str, amount: int) -> None:
        """`amount` allocations from the `node` or the `pod`."""
        if amount:
            self._allocations.labels(self._resource, source).inc(amount)

    def failed(self, source: str, amount: int) -> None:
        """`amount` allocations from the `node` or the `pod` that failed."""
        if amount:
            self._errors.labels(self._resource, source).inc(amount)

    def assigned(self, kind: str, amount: int) -> None:
        """`amount` containers got `node_exclusive`, `pod_exclusive` or `pod_shared`."""
        if amount:
            self._assignments.labels(self._resource, kind).inc(amount)

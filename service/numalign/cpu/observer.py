"""Adds up what the static CPU policy does, under the kubelet's names (section 18).

Separate from the numbers (`metrics`), which are pure. Every allocation counts that was
decided for keeps, also where the pod was refused in the end, as in the kubelet; a dry run
never gets here.
"""

from __future__ import annotations

from numalign.cpu.gauges import CpuGauges
from numalign.cpu.metrics import AllocationNumbers, container_numbers, pod_numbers
from numalign.cpu.state import CpuState
from numalign.cpu.static_setup import StaticSetup
from numalign.model.pod import Container, Pod
from numalign.provider.engine import Allocated
from numalign.telemetry.metrics import Metrics
from numalign.telemetry.resource_manager import ResourceManagerCounters


class CpuObserver:
    """The `Observer` of the CPU provider under the policy `static`.

    `shares` is None unless pod-level resource managers are on: only then do these counters
    exist.
    """

    def __init__(
        self,
        setup: StaticSetup,
        metrics: Metrics,
        gauges: CpuGauges,
        shares: ResourceManagerCounters | None,
    ) -> None:
        self._setup = setup
        self._gauges = gauges
        self._shares = shares
        self._requests = metrics.counter("kubelet_cpu_manager_pinning_requests_total")
        self._errors = metrics.counter("kubelet_cpu_manager_pinning_errors_total")
        aligned = metrics.counter("kubelet_container_aligned_compute_resources_count")
        misaligned = metrics.counter("kubelet_container_aligned_compute_resources_failure_count")
        self._whole_cores = aligned.labels("container", "physical_cpu")
        self._one_cache = aligned.labels("container", "uncore_cache")
        self._split_cores = misaligned.labels("container", "physical_cpu")

    def started(self, state: CpuState) -> None:
        """Show how the provider starts."""
        self._gauges.started(state)

    def allocated(
        self,
        before: CpuState,
        outcome: Allocated[CpuState],
        pod: Pod,
        container: Container | None,
    ) -> None:
        """Count one allocation."""
        if container is None:
            numbers = pod_numbers(self._setup, outcome, pod)
        else:
            numbers = container_numbers(self._setup, before, outcome, pod, container)
        self._count(numbers)
        if self._shares is not None:
            self._share_out(self._shares, numbers, "node" if container is not None else "pod")
        if numbers.taken:
            self._gauges.took(before, outcome.state, pod, container)

    def changed(self, state: CpuState) -> None:
        """Show how it stands now."""
        self._gauges.changed(state)

    def _count(self, numbers: AllocationNumbers) -> None:
        for counter, amount in (
            (self._requests, numbers.requests),
            (self._errors, numbers.errors),
            (self._whole_cores, numbers.aligned_physical_cpu),
            (self._split_cores, numbers.misaligned_physical_cpu),
            (self._one_cache, numbers.aligned_uncore_cache),
        ):
            if amount:
                counter.inc(amount)

    def _share_out(
        self, shares: ResourceManagerCounters, numbers: AllocationNumbers, source: str
    ) -> None:
        shares.allocated(source, numbers.exclusive_assignments + numbers.shared_assignments)
        shares.failed(source, numbers.errors)
        shares.assigned(f"{source}_exclusive", numbers.exclusive_assignments)
        shares.assigned("pod_shared", numbers.shared_assignments)

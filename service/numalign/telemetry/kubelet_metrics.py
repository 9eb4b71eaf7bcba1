"""The kubelet's metrics that numalign publishes, by the kubelet's names and buckets.

Separate from `own_metrics`, because these names belong to the kubelet's dashboards and alerts.
When each one moves is said by the rule in brackets.
"""

from __future__ import annotations

from numalign.telemetry.metrics import Kind, MetricSpec

# Go's default buckets, which are not prometheus_client's.
_GO_DEFAULT = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ADMISSION_MS = tuple(0.05 * 2**i for i in range(15))
# 15 bounds from 0.1 to 40 with a constant quotient.
_DRA_SECONDS = tuple(0.1 * (40 / 0.1) ** (i / 14) for i in range(15))

_ALIGNED = "kubelet_container_aligned_compute_resources_count"
_MISALIGNED = "kubelet_container_aligned_compute_resources_failure_count"
_ALIGNED_HELP = "Containers whose compute resources were aligned at a boundary"
_MISALIGNED_HELP = "Containers whose compute resources could not be aligned at a boundary"
_ALIGNMENT = ("scope", "boundary")
_NUMA = (("container", "numa_node"), ("pod", "numa_node"))


def _counter(
    name: str, help_: str, *labels: str, start: tuple[tuple[str, ...], ...] = ()
) -> MetricSpec:
    return MetricSpec(name=name, kind=Kind.COUNTER, help=help_, labels=labels, start=start)


def _gauge(name: str, help_: str, *labels: str) -> MetricSpec:
    return MetricSpec(name=name, kind=Kind.GAUGE, help=help_, labels=labels)


def _histogram(name: str, help_: str, *labels: str, buckets: tuple[float, ...]) -> MetricSpec:
    return MetricSpec(name=name, kind=Kind.HISTOGRAM, help=help_, labels=labels, buckets=buckets)


ADMISSION = (
    _counter(
        "kubelet_admission_rejections_total",
        "Pods that were not admitted, by reason (ADM-12)",
        "reason",
    ),
    _counter(
        "kubelet_pod_infeasible_resizes_total",
        "Resizes that this node can never carry out, by reason (RSZ-6)",
        "reason_detail",
    ),
)

TOPOLOGY = (
    _counter("kubelet_topology_manager_admission_requests_total", "Admissions asked for (TM-53)"),
    _counter(
        "kubelet_topology_manager_admission_errors_total", "Admissions that were refused (TM-53)"
    ),
    _histogram(
        "kubelet_topology_manager_admission_duration_ms",
        "Whole milliseconds that an admission took (TM-53)",
        buckets=_ADMISSION_MS,
    ),
)

CPU = (
    _counter(
        "kubelet_cpu_manager_pinning_requests_total", "Allocations that need pinning (CPU-44)"
    ),
    _counter("kubelet_cpu_manager_pinning_errors_total", "Allocations that could not be pinned"),
    _gauge(
        "kubelet_cpu_manager_shared_pool_size_millicores",
        "Thousandths of CPUs that containers without exclusive CPUs run on",
    ),
    _gauge("kubelet_cpu_manager_exclusive_cpu_allocation_count", "CPUs allocated exclusively"),
    _gauge(
        "kubelet_cpu_manager_allocation_per_numa",
        "CPUs allocated exclusively, by NUMA node",
        "numa_node",
    ),
)

MEMORY = (
    _counter(
        "kubelet_memory_manager_pinning_requests_total", "Allocations that need pinning (MEM-64)"
    ),
    _counter(
        "kubelet_memory_manager_pinning_errors_total",
        "Allocations that could not be pinned (MEM-65)",
    ),
)

DEVICE = (
    _counter(
        "kubelet_device_plugin_registration_total",
        "Registrations of device plugins (DEV-7)",
        "resource_name",
    ),
    _histogram(
        "kubelet_device_plugin_alloc_duration_seconds",
        "Seconds that a device plugin's Allocate took (DEV-38)",
        "resource_name",
        buckets=_GO_DEFAULT,
    ),
)

POD_RESOURCES = tuple(
    _counter(f"kubelet_pod_resources_endpoint_{name}", f"{help_} (PR-14)", "server_api_version")
    for name, help_ in (
        ("requests_total", "Calls of the pod resources endpoint"),
        ("requests_list", "Calls of List"),
        ("requests_get_allocatable", "Calls of GetAllocatableResources"),
        ("requests_get", "Calls of Get"),
        ("errors_list", "Failed calls of List"),
        ("errors_get_allocatable", "Failed calls of GetAllocatableResources"),
        ("errors_get", "Failed calls of Get"),
    )
)

DRA = (
    _histogram(
        "dra_operations_duration_seconds",
        "Seconds that preparing or unpreparing resource claims took (DRA-40)",
        "operation_name",
        "is_error",
        buckets=_DRA_SECONDS,
    ),
    _histogram(
        "dra_grpc_operations_duration_seconds",
        "Seconds that a call to a DRA driver took (DRA-40)",
        "driver_name",
        "method_name",
        "grpc_status_code",
        buckets=_DRA_SECONDS,
    ),
    _gauge("dra_resource_claims_in_use", "Prepared resource claims (DRA-41)", "driver_name"),
)

RESOURCE_MANAGER = (
    _counter(
        "resource_manager_allocations_total",
        "Allocations by the CPU and memory providers (CPU section 18, MEM-66)",
        "resource_name",
        "source",
    ),
    _counter(
        "resource_manager_allocation_errors_total",
        "Failed allocations by the CPU and memory providers (CPU section 18, MEM-66)",
        "resource_name",
        "source",
    ),
    _counter(
        "resource_manager_container_assignments",
        "Containers by the kind of assignment they got (CPU section 18, MEM-66)",
        "resource_name",
        "assignment_type",
    ),
)
"""Published by the CPU and memory providers, only with pod-level resource managers on."""


def alignment(*, numa: bool, static_cpu: bool) -> tuple[MetricSpec, ...]:
    """The alignment counters, with the series that exist from the start.

    `numa`: the topology policy is other than `none` (TM-53). `static_cpu`: the CPU policy is
    `static` (CPU-91).
    """
    counted = _NUMA if numa else ()
    failed = _NUMA if numa else ()
    if static_cpu:
        counted = (*counted, ("container", "physical_cpu"), ("container", "uncore_cache"))
        failed = (*failed, ("container", "physical_cpu"))
    return (
        _counter(_ALIGNED, _ALIGNED_HELP, *_ALIGNMENT, start=counted),
        _counter(_MISALIGNED, _MISALIGNED_HELP, *_ALIGNMENT, start=failed),
    )

"""Which service publishes which metrics, and the instruments of one process.

Separate from the declarations (`telemetry.kubelet_metrics`, `telemetry.own_metrics`), which
know no services. What a page shows at all depends on the settings: the series that exist from
the start, and the counters of pod-level resource managers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sized

from numalign.config.settings import Address, Service, Settings
from numalign.telemetry import kubelet_metrics, own_metrics
from numalign.telemetry.metrics import Metrics, MetricSpec

_ALIGNMENT = kubelet_metrics.alignment(numa=True, static_cpu=True)

PUBLISHED: Mapping[Service, tuple[MetricSpec, ...]] = {
    Service.ADMISSION: (
        *kubelet_metrics.ADMISSION,
        *kubelet_metrics.POD_RESOURCES,
        *own_metrics.ADMIT_HANDLERS,
        *own_metrics.JOURNAL,
    ),
    Service.TOPOLOGY: (
        *kubelet_metrics.TOPOLOGY,
        *_ALIGNMENT,
        *own_metrics.DECISIONS,
        *own_metrics.STORE,
    ),
    Service.CPU: (
        *kubelet_metrics.CPU,
        *_ALIGNMENT,
        *kubelet_metrics.RESOURCE_MANAGER,
        *own_metrics.STORE,
        *own_metrics.OWNERS,
    ),
    Service.MEMORY: (
        *kubelet_metrics.MEMORY,
        *kubelet_metrics.RESOURCE_MANAGER,
        *own_metrics.STORE,
        *own_metrics.OWNERS,
    ),
    Service.DEVICE: (
        *kubelet_metrics.DEVICE,
        *own_metrics.DEVICE_PLUGINS,
        *own_metrics.STORE,
    ),
    Service.DRA: (
        *kubelet_metrics.DRA,
        *own_metrics.STORE,
    ),
}
"""Everything that each service can publish."""


def address_of(service: Service | None, settings: Settings) -> Address | None:
    """Where a process serves its metrics; None for nowhere. `service` None: all in one."""
    metrics = settings.metrics
    return metrics.address if service is None else metrics.address_of(service)


def open_metrics(service: Service | None, settings: Settings) -> Metrics:
    """The instruments of a process that runs `service`, or (None) all.

    They do nothing where the metrics are served nowhere.
    """
    services = settings.services if service is None else (service,)
    return Metrics(specs_of(services, settings), enabled=address_of(service, settings) is not None)


def specs_of(services: Iterable[Service], settings: Settings) -> tuple[MetricSpec, ...]:
    """What a process with these services publishes under these settings, each metric once."""
    asked = frozenset(services)
    specs = {spec.name: spec for service in asked for spec in PUBLISHED[service]}
    aligned = kubelet_metrics.alignment(
        numa=Service.TOPOLOGY in asked and settings.topology.policy != "none",
        static_cpu=Service.CPU in asked and settings.cpu.policy == "static",
    )
    specs |= {spec.name: spec for spec in aligned if spec.name in specs}
    if not settings.gates.pod_level_resource_managers:
        for spec in kubelet_metrics.RESOURCE_MANAGER:
            specs.pop(spec.name, None)
    return tuple(specs[name] for name in sorted(specs))


def count_reports(metrics: Metrics, service: Service, reports: Callable[[], Sized]) -> None:
    """Show how much a service reports of its state."""
    gauge = metrics.gauge("numalign_state_reports").labels(service.value)
    gauge.set_function(lambda: len(reports()))


def observe_commit(metrics: Metrics) -> Callable[[float], None] | None:
    """Who is told how long a synced transaction took; None where nobody counts."""
    if not metrics.enabled:
        return None
    return metrics.histogram("numalign_store_commit_seconds").observe


def services_of(spec: MetricSpec) -> tuple[Service, ...]:
    """The services that publish a metric."""
    return tuple(
        service
        for service, published in PUBLISHED.items()
        if any(spec.name == other.name for other in published)
    )


def metrics_table() -> str:
    """Every metric as a Markdown table, as docs/observability.md shows it."""
    rows = [
        "| Metric | Type | Labels | Service | What it says |",
        "| --- | --- | --- | --- | --- |",
    ]
    for spec in own_metrics.all_metrics():
        labels = ", ".join(f"`{label}`" for label in spec.labels)
        services = ", ".join(service.value for service in services_of(spec))
        rows.append(f"| `{spec.name}` | {spec.kind.value} | {labels} | {services} | {spec.help} |")
    return "\n".join(rows) + "\n"

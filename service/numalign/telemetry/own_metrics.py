"""numalign's own metrics, and the list of every metric there is.

Few labels, each with a bounded set of values; seconds throughout.
"""

from __future__ import annotations

from numalign.telemetry import kubelet_metrics
from numalign.telemetry.metrics import Kind, MetricSpec

# An admission in one process takes about a millisecond; over sockets a few.
_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_CALL_SECONDS = (0.0001, 0.00025, *_SECONDS)

VERDICTS = ("admitted", "rejected", "deferred")
"""Values of the label `verdict`."""

DECISIONS = (
    MetricSpec(
        name="numalign_admissions_total",
        kind=Kind.COUNTER,
        help="Decisions on pods; the reason is empty unless the pod was not admitted",
        labels=("verdict", "reason"),
        start=(("admitted", ""),),
    ),
    MetricSpec(
        name="numalign_admission_duration_seconds",
        kind=Kind.HISTOGRAM,
        help="Seconds from the arrival of a request to its decision",
        labels=("verdict",),
        buckets=_SECONDS,
        start=tuple((verdict,) for verdict in VERDICTS),
    ),
    MetricSpec(
        name="numalign_merges_unproved_total",
        kind=Kind.COUNTER,
        help="Merges whose set of NUMA nodes was not proved to be the best of its size",
    ),
    MetricSpec(
        name="numalign_admission_queue_depth",
        kind=Kind.GAUGE,
        help="Admissions that wait for their turn",
    ),
    MetricSpec(
        name="numalign_provider_up",
        kind=Kind.GAUGE,
        help="Whether a hint provider answered when it was last asked or listened to",
        labels=("provider",),
    ),
    MetricSpec(
        name="numalign_provider_call_duration_seconds",
        kind=Kind.HISTOGRAM,
        help="Seconds that a call to a hint provider took",
        labels=("provider", "method"),
        buckets=_CALL_SECONDS,
    ),
)
"""Of the Topology Manager."""

ADMIT_HANDLERS = (
    MetricSpec(
        name="numalign_admit_handler_duration_seconds",
        kind=Kind.HISTOGRAM,
        help="Seconds that a call to an admit handler of others took, and how it ended",
        labels=("handler", "end"),
        buckets=_CALL_SECONDS,
    ),
)
"""Of the Admission service, where others have handlers in its chain."""

JOURNAL = (
    MetricSpec(
        name="numalign_journal_dropped_total",
        kind=Kind.COUNTER,
        help="Decisions that could not be written to the journal",
    ),
)
"""Of the Admission service."""

DEVICE_PLUGINS = (
    MetricSpec(
        name="numalign_device_plugin_odd_devices_total",
        kind=Kind.COUNTER,
        help="Devices listed in a way that makes no sense: an id twice, a NUMA node not there",
        labels=("resource_name", "kind"),
    ),
)
"""Of the device provider, where device plugins or a kubelet tell of devices."""

STORE = (
    MetricSpec(
        name="numalign_store_commit_seconds",
        kind=Kind.HISTOGRAM,
        help="Seconds that a synced transaction on the state file took",
        buckets=_CALL_SECONDS,
    ),
    MetricSpec(
        name="numalign_state_reports",
        kind=Kind.GAUGE,
        help="What was fitted, dropped or lost of the state since the start; status names each",
        labels=("service",),
    ),
)
"""Of every process that keeps state."""


OWNERS = (
    MetricSpec(
        name="numalign_second_owners",
        kind=Kind.GAUGE,
        help="Others that were found to hand out the same resource on this node",
        labels=("resource",),
    ),
)
"""Of the services that hand out what a kubelet, a DRA driver or an NRI policy may too."""


def all_metrics() -> tuple[MetricSpec, ...]:
    """Every metric that some service can publish, by name."""
    specs = (
        *kubelet_metrics.ADMISSION,
        *kubelet_metrics.TOPOLOGY,
        *kubelet_metrics.alignment(numa=True, static_cpu=True),
        *kubelet_metrics.CPU,
        *kubelet_metrics.MEMORY,
        *kubelet_metrics.DEVICE,
        *kubelet_metrics.DRA,
        *kubelet_metrics.POD_RESOURCES,
        *kubelet_metrics.RESOURCE_MANAGER,
        *ADMIT_HANDLERS,
        *DECISIONS,
        *DEVICE_PLUGINS,
        *JOURNAL,
        *STORE,
        *OWNERS,
    )
    return tuple(sorted(specs, key=lambda spec: spec.name))

"""What the agent counts, by name: the kubelet's names where a rule gives them, else our own."""

from __future__ import annotations

from numalign.telemetry.metrics import Kind, MetricSpec

ADMISSION_ERRORS = "numalign_agent_admission_errors_total"
ADMISSIONS = "numalign_agent_admissions_total"
ADMISSION_SECONDS = "numalign_agent_admission_duration_seconds"
CONTAINERS_STARTED = "numalign_agent_containers_started_total"
DEFERRED_RESIZES = "kubelet_pod_deferred_accepted_resizes_total"
DESIRED_PODS = "kubelet_desired_pods"
ACTIVE_PODS = "kubelet_active_pods"
MIRROR_PODS = "kubelet_mirror_pods"
WORKING_PODS = "kubelet_working_pods"
JOURNAL_FAILURES = "numalign_agent_journal_failures_total"
JOURNAL_LOST = "numalign_agent_journal_lost_entries_total"
ORPHANED_PODS = "kubelet_orphaned_runtime_pods_total"
PLEG_DISCARDED = "kubelet_pleg_discard_events"
PLEG_SECONDS = "kubelet_pleg_relist_duration_seconds"
PREEMPTIONS = "numalign_agent_preemptions_total"
REQUESTED_RESIZES = "kubelet_container_requested_resizes_total"
RESTARTED_PODS = "kubelet_restarted_pods_total"
UNDECIDED_PODS = "numalign_agent_undecided_pods"
STRAYED_CONTAINERS = "numalign_agent_strayed_containers_total"
WORKER_SECONDS = "kubelet_pod_worker_duration_seconds"
WORKER_START_SECONDS = "kubelet_pod_worker_start_duration_seconds"

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


def _counter(name: str, help_: str, *labels: str) -> MetricSpec:
    return MetricSpec(name=name, kind=Kind.COUNTER, help=help_, labels=labels)


def _gauge(name: str, help_: str, *labels: str) -> MetricSpec:
    return MetricSpec(name=name, kind=Kind.GAUGE, help=help_, labels=labels)


def _seconds(name: str, help_: str, *labels: str) -> MetricSpec:
    return MetricSpec(name=name, kind=Kind.HISTOGRAM, help=help_, labels=labels, buckets=_SECONDS)


AGENT = (
    _counter(ADMISSIONS, "Answers of Admission", "verdict"),
    _counter(ADMISSION_ERRORS, "Calls of Admission that came to no decision", "code"),
    _seconds(ADMISSION_SECONDS, "Seconds from the first question about a pod to its decision"),
    _gauge(UNDECIDED_PODS, "Pods that wait for a decision"),
    _counter(PREEMPTIONS, "Pods that were ended to make room for a critical one"),
    _counter(CONTAINERS_STARTED, "Containers that were started", "kind"),
    _counter(STRAYED_CONTAINERS, "Containers that were found where they should not be"),
    _counter(JOURNAL_FAILURES, "Writes of the journal that failed"),
    _counter(JOURNAL_LOST, "Entries of the journal that could not be kept"),
    _gauge(DESIRED_PODS, "Pods that sources want here (HSK-8)", "static"),
    _gauge(ACTIVE_PODS, "Pods that hold or will hold resources (HSK-8)", "static"),
    _gauge(MIRROR_PODS, "Mirror pods (HSK-8)"),
    _gauge(WORKING_PODS, "Pods that have a worker (HSK-8)", "lifecycle", "config", "static"),
    _counter(ORPHANED_PODS, "Pods found in the runtime that nobody knew (HSK-7)"),
    _counter(RESTARTED_PODS, "Pods that were started anew by housekeeping (HSK-5)", "static"),
    _counter(PLEG_DISCARDED, "Events of containers that nobody had room for (PLEG-3)"),
    _seconds(PLEG_SECONDS, "Seconds that a listing of the runtime took"),
    _seconds(WORKER_SECONDS, "Seconds that an operation on a pod took (WRK-18)", "operation_type"),
    _seconds(WORKER_START_SECONDS, "Seconds from seeing a pod to working on it (WRK-18)"),
    _counter(
        REQUESTED_RESIZES,
        "Changes of resources that were asked for in place (HND-2)",
        "resource",
        "requirement",
        "operation",
    ),
    _counter(DEFERRED_RESIZES, "Resizes that were granted after waiting (RES-3)", "retry_trigger"),
)
"""Everything that an agent counts."""

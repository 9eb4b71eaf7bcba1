"""What the Topology Manager tells of its decisions: one line, the counters, the span.

Separate from the servicer, which translates, and from the deciding parts, which tell
nothing: they leave numbers in their results (`ScopeResult.counts`), and this adds them up.

A dry run decides on nothing, so no counter moves; its line and its span say what it is. An
answer from the record is an Admit call like any other to the kubelet's counters (TM-53), but
no decision to ours.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

from numalign.model.ids import PodUid
from numalign.telemetry import attributes
from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign.telemetry.spans import AttributeValue
from numalign.telemetry.tracing import active_tracer
from numalign.topology.decision import AdmitCall, Decision
from numalign.topology.scope import ScopeResult
from numalign.topology.servicer import AdmissionObserver
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

REASONS = frozenset(
    {
        "TopologyAffinityError",
        "SMTAlignmentError",
        "EmptyPodSharedPoolError",
        "EmptySharedPoolError",
        "HugePagesInUse",
        "UnexpectedAdmissionError",
    }
)
"""Reasons that are label values as they are; a third party's own counts as `Other`."""

_VERDICTS = {
    pb.VERDICT_ADMITTED: "admitted",
    pb.VERDICT_REJECTED: "rejected",
    pb.VERDICT_DEFERRED: "deferred",
}

_log = get_logger("topology")


class DecisionObserver(AdmissionObserver):
    """Logs, counts and annotates what one Topology Manager does.

    `scope` is the name of the scope, a label of the alignment counters; `waiting` says how
    many calls wait for their turn, from any thread.
    """

    def __init__(self, metrics: Metrics, scope: str, waiting: Callable[[], int]) -> None:
        self._scope = scope
        self._requests = metrics.counter("kubelet_topology_manager_admission_requests_total")
        self._errors = metrics.counter("kubelet_topology_manager_admission_errors_total")
        self._milliseconds = metrics.histogram("kubelet_topology_manager_admission_duration_ms")
        self._aligned = metrics.counter("kubelet_container_aligned_compute_resources_count")
        self._not_aligned = metrics.counter(
            "kubelet_container_aligned_compute_resources_failure_count"
        )
        self._unproved = metrics.counter("numalign_merges_unproved_total")
        self._admissions = metrics.counter("numalign_admissions_total")
        self._seconds = metrics.histogram("numalign_admission_duration_seconds")
        metrics.gauge("numalign_admission_queue_depth").set_function(waiting)

    def asked(self, call: AdmitCall) -> None:
        """Say on the span which pod it is about, so that a failed call says it too."""
        tracer = active_tracer()
        if tracer is not None:
            tracer.annotate(
                attributes.pod_attributes(call.pod.uid, call.pod.namespace, call.pod.name)
            )

    def decided(self, call: AdmitCall, decision: Decision, seconds: float) -> None:
        """Tell how an Admit ended."""
        verdict = _VERDICTS[decision.response.verdict]
        self._write(call, decision, verdict, seconds)
        if not call.dry_run:
            self._count(decision, verdict, seconds)
        tracer = active_tracer()
        if tracer is not None:
            tracer.annotate(_attributes(call, decision, verdict))

    def released(self, pod_uid: PodUid, seconds: float) -> None:
        """Tell that a pod gave back what it held."""
        _log.info("pod released", pod_uid=pod_uid, duration_ms=_milliseconds(seconds))

    def reconciled(self, owner: str, outcome: ad.ReconcileResponse, seconds: float) -> None:
        """Tell that pods were found to be gone; nothing where none was."""
        if outcome.released_pod_uids:
            _log.info(
                "pods released as their owner has them no more",
                owner=owner,
                released=list(outcome.released_pod_uids),
                duration_ms=_milliseconds(seconds),
            )

    def _write(self, call: AdmitCall, decision: Decision, verdict: str, seconds: float) -> None:
        response = decision.response
        _log.info(
            f"pod {verdict}",
            verdict=verdict,
            reason=response.reason,
            message=response.message,
            owner=call.owner,
            admission_id=decision.admission_id,
            resize=call.resize,
            already_admitted=response.already_admitted,
            resize_pending=response.resize_pending,
            dry_run=call.dry_run,
            duration_ms=_milliseconds(seconds),
            queue_wait_ms=_milliseconds(decision.waited),
        )
        for warning in response.warnings:
            _log.warning(warning, admission_id=decision.admission_id)
        if decision.result is not None and _log.is_enabled_for(logging.DEBUG):
            _explain(decision.result)

    def _count(self, decision: Decision, verdict: str, seconds: float) -> None:
        self._requests.inc()
        self._milliseconds.observe(math.floor(seconds * 1000))
        result = decision.result
        if result is None:
            return
        reason = decision.response.reason
        self._admissions.labels(verdict, reason_label(reason)).inc()
        self._seconds.labels(verdict).observe(seconds)
        if result.warnings:
            self._unproved.inc(len(result.warnings))
        counts = result.counts
        if counts.errors:
            self._errors.inc(counts.errors)
        if counts.aligned:
            self._aligned.labels(self._scope, "numa_node").inc(counts.aligned)
        if counts.not_aligned:
            self._not_aligned.labels(self._scope, "numa_node").inc(counts.not_aligned)


def reason_label(reason: str) -> str:
    """The label value for a reason: one of a few, whatever third parties say."""
    return reason if not reason or reason in REASONS else "Other"


def _explain(result: ScopeResult) -> None:
    for merge in result.merges:
        _log.debug(
            "hints merged",
            container=merge.container or "",
            affinity=attributes.affinity_text(merge.best),
            preferred=merge.best.preferred,
            admitted=merge.admitted,
        )


def _attributes(call: AdmitCall, decision: Decision, verdict: str) -> dict[str, AttributeValue]:
    found: dict[str, AttributeValue] = {
        attributes.ADMISSION_ID: decision.admission_id,
        attributes.ALREADY_ADMITTED: decision.response.already_admitted,
        attributes.DRY_RUN: call.dry_run,
        attributes.QUEUE_WAIT_MS: _milliseconds(decision.waited),
        attributes.REASON: decision.response.reason,
        attributes.VERDICT: verdict,
    }
    if decision.result is not None:
        found[attributes.AFFINITY] = _affinities(decision.result)
    return found


def _affinities(result: ScopeResult) -> str:
    hints = result.affinities.items()
    return " ".join(f"{name}={attributes.affinity_text(hint)}" for name, hint in hints)


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)

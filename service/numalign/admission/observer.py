"""What the Admission service tells of its answers: the kubelet's counters, the span.

Separate from the servicer, which translates. Rules ADM-12 and RSZ-6: a rejected addition and an
infeasible resize are counted apart; a dry run rejects nothing, and what is deferred is not
rejected.
"""

from __future__ import annotations

from numalign.admission.handlers.resize_feasibility import reason_detail
from numalign.telemetry import attributes
from numalign.telemetry.metrics import Metrics
from numalign.telemetry.tracing import active_tracer
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb

REASONS = frozenset(
    {
        "AppArmor",
        "Evicted",
        "InitContainerRestartPolicyForbidden",
        "InvalidNodeInfo",
        "NodeShutdown",
        "OutOfcpu",
        "OutOfephemeral-storage",
        "OutOfmemory",
        "OutOfpods",
        "PodFeatureUnsupported",
        "PodLevelResourcesNotSupported",
        "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "SupplementalGroupsPolicyNotSupported",
        "SysctlForbidden",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
        "UnexpectedPredicateFailureType",
        "UnknownReason",
        "VolumeAttachmentLimitExceeded",
        "node(s) had taints that the pod didn't tolerate",
    }
)
"""Reasons that are label values as they are."""


def reason_label(reason: str) -> str:
    """The label value for a reason (ADM-12, TM-49)."""
    if reason in REASONS:
        return reason
    return "OutOfExtendedResources" if reason.startswith("OutOf") else "Other"


class AnswerObserver:
    """Hears every answer of one Admission service."""

    def __init__(self, metrics: Metrics) -> None:
        self._rejections = metrics.counter("kubelet_admission_rejections_total")
        self._infeasible = metrics.counter("kubelet_pod_infeasible_resizes_total")

    def asked(self, request: ad.AdmitRequest) -> None:
        """Say on the span which pod the call is about."""
        tracer = active_tracer()
        if tracer is not None:
            pod = request.pod.metadata
            tracer.annotate(attributes.pod_attributes(pod.uid, pod.namespace, pod.name))

    def answered(self, request: ad.AdmitRequest, response: ad.AdmitResponse) -> None:
        """Count a rejection, and say on the span how the call ended."""
        if response.verdict == pb.VERDICT_REJECTED and not request.dry_run:
            if request.operation == pb.OPERATION_RESIZE:
                self._infeasible.labels(reason_detail(response.message)).inc()
            else:
                self._rejections.labels(reason_label(response.reason)).inc()
        tracer = active_tracer()
        if tracer is not None:
            verdict = pb.Verdict.Name(response.verdict).removeprefix("VERDICT_").lower()
            tracer.annotate({attributes.VERDICT: verdict, attributes.REASON: response.reason})

"""Names and values of the attributes that numalign puts on spans.

Separate from the tracer, which knows no pods. Only called where spans are recorded.
"""

from __future__ import annotations

from numalign.model.hint import TopologyHint
from numalign.model.numa_mask import nodes_of
from numalign.telemetry.tracing import AttributeValue

ADMISSION_ID = "numalign.admission_id"
AFFINITY = "numalign.affinity"
ALREADY_ADMITTED = "numalign.already_admitted"
CONTAINER = "k8s.container.name"
DRY_RUN = "numalign.dry_run"
HANDLER = "numalign.handler"
PREFERRED = "numalign.affinity.preferred"
PROVIDER = "numalign.provider"
PROVIDERS = "numalign.providers"
POLICY_ADMITTED = "numalign.policy.admitted"
QUEUE_WAIT_MS = "numalign.queue_wait_ms"
REASON = "numalign.reason"
VERDICT = "numalign.verdict"

NO_AFFINITY = "any"
"""Stands for a hint without a mask."""


def pod_attributes(uid: str, namespace: str, name: str) -> dict[str, AttributeValue]:
    """What a span is about, by the semantic conventions for Kubernetes."""
    return {"k8s.pod.uid": uid, "k8s.namespace.name": namespace, "k8s.pod.name": name}


def affinity_attributes(hint: TopologyHint) -> dict[str, AttributeValue]:
    """The NUMA nodes of a hint, and whether it is preferred."""
    return {AFFINITY: affinity_text(hint), PREFERRED: hint.preferred}


def affinity_text(hint: TopologyHint) -> str:
    """The NUMA nodes of a hint, ascending, as `0,1`."""
    if hint.mask is None:
        return NO_AFFINITY
    return ",".join(map(str, nodes_of(hint.mask)))

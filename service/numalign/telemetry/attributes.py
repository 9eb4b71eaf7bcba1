"""Names and values of the attributes that numalign puts on spans.

Separate from the tracer, which knows no pods. Only called where spans are recorded.
"""

from __future__ import annotations

from collections.abc import Sequence

from numalign.families.choices import some_choices
from numalign.model.hint import FamilyList, HintList, ProviderHints, TopologyHint
from numalign.model.numa_mask import nodes_of
from numalign.telemetry.spans import AttributeValue

ADMISSION_ID = "numalign.admission_id"
AFFINITY = "numalign.affinity"
ALREADY_ADMITTED = "numalign.already_admitted"
CONTAINER = "k8s.container.name"
DRY_RUN = "numalign.dry_run"
HANDLER = "numalign.handler"
HINTS = "numalign.hints"
PREFERRED = "numalign.affinity.preferred"
PROVIDER = "numalign.provider"
PROVIDERS = "numalign.providers"
POLICY_ADMITTED = "numalign.policy.admitted"
QUEUE_WAIT_MS = "numalign.queue_wait_ms"
REASON = "numalign.reason"
VERDICT = "numalign.verdict"

NO_AFFINITY = "any"
"""Stands for a hint without a mask."""

_MOST_HINTS = 8


def pod_attributes(uid: str, namespace: str, name: str) -> dict[str, AttributeValue]:
    """What a span is about, by the semantic conventions for Kubernetes."""
    return {"k8s.pod.uid": uid, "k8s.namespace.name": namespace, "k8s.pod.name": name}


def container_attributes(pod_uid: str, container: str = "") -> dict[str, AttributeValue]:
    """What a span is about where only the UID of the pod is known."""
    found: dict[str, AttributeValue] = {"k8s.pod.uid": pod_uid}
    return {**found, CONTAINER: container} if container else found


def affinity_attributes(hint: TopologyHint) -> dict[str, AttributeValue]:
    """The NUMA nodes of a hint, and whether it is preferred."""
    return {AFFINITY: affinity_text(hint), PREFERRED: hint.preferred}


def hints_text(answers: Sequence[ProviderHints]) -> str:
    """What the providers offered, as `cpu=0*|1*|0,1 memory=any`; a star is for preferred.

    Of each resource the first few are named, then `...`.
    """
    return " ".join(
        f"{resource}={_hint_list_text(hints)}"
        for answer in answers
        if answer is not None
        for resource, hints in sorted(answer.items())
    )


def _hint_list_text(hints: HintList) -> str:
    if hints is None:
        return NO_AFFINITY
    if isinstance(hints, FamilyList):
        choices = some_choices(hints, _MOST_HINTS)
        named, complete = choices.hints, choices.complete
    else:
        named, complete = tuple(hints[:_MOST_HINTS]), len(hints) <= _MOST_HINTS
    texts = [affinity_text(hint) + ("*" if hint.preferred else "") for hint in named]
    return "|".join(texts if complete else [*texts, "..."]) or "nowhere"


def affinity_text(hint: TopologyHint) -> str:
    """The NUMA nodes of a hint, ascending, as `0,1`."""
    if hint.mask is None:
        return NO_AFFINITY
    return ",".join(map(str, nodes_of(hint.mask)))

"""Runners of `predicates`, `preemption` and `preemption_chain` records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.failures import (
    Failure,
    InsufficientResource,
    PredicateFailure,
)
from numalign.admission.handlers.node_view import NodeView
from numalign.admission.handlers.predicates import DeviceCounts, decide_predicates
from numalign.admission.handlers.preemption import (
    CONDITION_MESSAGE,
    CONDITION_REASON,
    CONDITION_TYPE,
    VICTIM_MESSAGE,
    VICTIM_REASON,
    preempt,
)
from numalign.model.feature_gates import FeatureGates
from numalign.replay.recordings import Json
from numalign.replay.unit.admission.objects import node_of, pod_of, verdict_answer

_GATES = FeatureGates()


def predicates_answer(record: Json) -> Json:
    """The predicate handler's verdict, failures, victims, and how it read the node."""
    given = record["input"]
    reads = ["cached"]

    def fresh() -> NodeView | None:
        reads.append("fresh")
        if given.get("fresh_node_error"):
            return None
        return node_of(given.get("fresh_node", given["node"]))

    fit = decide_predicates(
        pod_of(given["pod"]),
        [pod_of(other) for other in given["other_pods"]],
        node_of(given["node"]),
        DeviceCounts(
            allocated=given.get("allocated_devices", {}),
            pod_holds_some=given.get("pod_holds_devices", False),
        ),
        _GATES,
        fresh_node=fresh,
    )
    answer = verdict_answer(fit.verdict) | {
        "failures": _failures(fit.failures),
        "kills": _kills(fit.victims),
        "node_reads": reads,
    }
    if fit.victims or "events" in record["expected"]:
        answer["events"] = _events(fit.victims)
    return answer


def predicates_expected(record: Json) -> Json:
    """The main verdict: the one for the first name, which is the order that is kept here."""
    return {key: value for key, value in record["expected"].items() if key != "also_accepted"}


def preemption_answer(record: Json) -> Json:
    """What preemption leaves of the failures, and whom it ends."""
    given = record["input"]
    outcome = preempt(
        pod_of(given["pod"]),
        [_failure(failure) for failure in given["failures"]],
        [pod_of(pod) for pod in given["active_pods"]],
        _GATES,
    )
    return {
        "failures": _failures(outcome.failures),
        "error": outcome.error,
        "kills": _kills(outcome.victims),
        "events": _events(outcome.victims),
    }


def _failure(given: Json) -> Failure:
    if "resource" in given:
        return InsufficientResource(
            given["resource"], given["requested"], given["used"], given["capacity"]
        )
    return PredicateFailure(given["predicate"], given["description"])


def _failures(failures: Iterable[Failure]) -> list[Json]:
    shown: list[Json] = []
    for failure in failures:
        match failure:
            case InsufficientResource(resource, requested, used, capacity):
                shown.append(
                    {
                        "resource": resource,
                        "requested": requested,
                        "used": used,
                        "capacity": capacity,
                    }
                )
            case PredicateFailure(predicate, description):
                shown.append({"predicate": predicate, "description": description})
    return shown


def _kills(victims: Sequence[AdmitPod]) -> list[Json]:
    return [
        {
            "uid": victim.uid,
            "evicted": True,
            "grace_override": None,
            "status": {
                "phase": "Failed",
                "reason": VICTIM_REASON,
                "message": VICTIM_MESSAGE,
                "conditions": [
                    {
                        "type": CONDITION_TYPE,
                        "status": "True",
                        "reason": CONDITION_REASON,
                        "message": CONDITION_MESSAGE,
                    }
                ],
            },
        }
        for victim in victims
    ]


def _events(victims: Sequence[AdmitPod]) -> list[Json]:
    return [
        {"uid": victim.uid, "type": "Warning", "reason": VICTIM_REASON, "text": VICTIM_MESSAGE}
        for victim in victims
    ]

"""Between a chain's questions and answers and the messages of the AdmitHandler contract.

Separate from the calls: what an answer may say is checked here, without a connection.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from numalign.admission.chain.question import Answer, Operation, Question
from numalign.admission.handlers.admit_pod import AdmitPod
from numalign.admission.handlers.node_usage import in_force
from numalign.admission.handlers.verdict import ADMITTED, Verdict, rejected
from numalign.model.feature_gates import FeatureGates
from numalign.model.pod_resources import pod_requests
from numalign.model.quoting import quoted
from numalign.v1 import admit_handler_pb2 as ah
from numalign.v1 import types_pb2 as pb

DEFAULT_RETRY_SECONDS = 10.0
LONGEST_TEXT = 4096
"""Characters that a message or a warning may have."""

_REASON = re.compile(r"[A-Za-z][A-Za-z0-9_,:./-]{0,127}\Z")
_OPERATIONS = {Operation.ADD: pb.OPERATION_ADD, Operation.RESIZE: pb.OPERATION_RESIZE}


class BadAnswer(Exception):
    """What a handler answered is no decision; the text says why."""


class OtherPods:
    """The other pods of a question as messages, each made once while it stays the same."""

    def __init__(self, gates: FeatureGates) -> None:
        self._gates = gates
        self._known: dict[str, tuple[AdmitPod, ah.OtherPod]] = {}

    def messages(self, pods: Iterable[AdmitPod]) -> list[ah.OtherPod]:
        """A message for each pod, in order."""
        known: dict[str, tuple[AdmitPod, ah.OtherPod]] = {}
        for pod in pods:
            before = self._known.get(pod.uid)
            if before is None or before[0] is not pod:
                before = (pod, other_pod(pod, self._gates))
            known[pod.uid] = before
        self._known = known
        return [message for _, message in known.values()]


def other_pod(pod: AdmitPod, gates: FeatureGates) -> ah.OtherPod:
    """What a handler is told of another pod."""
    requests = pod_requests(in_force(pod), gates)
    return ah.OtherPod(
        pod_uid=pod.uid,
        namespace=pod.pod.namespace,
        name=pod.pod.name,
        labels=pod.labels,
        priority=pod.priority,
        requests={name: amount.canonical() for name, amount in requests.items()},
    )


def judge_request(question: Question, others: Iterable[ah.OtherPod]) -> ah.JudgeRequest:
    """The question as it is sent."""
    return ah.JudgeRequest(
        pod=question.sent.pod,
        operation=_OPERATIONS[question.operation],
        dry_run=question.sent.dry_run,
        node=question.sent.node,
        node_conditions=question.facts.conditions,
        shutting_down=question.facts.shutting_down,
        other_pods=others,
        allocated_devices=question.devices.allocated,
    )


def answer_of(response: ah.JudgeResponse, question: Question) -> Answer:
    """What a response says. Raises BadAnswer for one that says nothing, or what it must not."""
    warnings = tuple(_text("warnings", text) for text in response.warnings)
    match response.WhichOneof("verdict"):
        case "admit":
            victims = _victims(response.admit.victim_pod_uids, question)
            return Answer(ADMITTED, victims, warnings=warnings)
        case "reject":
            return Answer(_refusal("reject", response.reject), warnings=warnings)
        case "defer":
            return Answer(
                _refusal("defer", response.defer),
                retry_after=_retry_after(response.defer),
                warnings=warnings,
            )
    raise BadAnswer("the answer has no verdict")


def _refusal(field: str, refusal: ah.JudgeResponse.Reject | ah.JudgeResponse.Defer) -> Verdict:
    if not _REASON.match(refusal.reason):
        raise BadAnswer(f"{field}.reason is no word to match on: {quoted(refusal.reason[:64])}")
    return rejected(refusal.reason, _text(f"{field}.message", refusal.message))


def _text(field: str, text: str) -> str:
    if len(text) > LONGEST_TEXT:
        raise BadAnswer(f"{field} has {len(text)} characters; at most {LONGEST_TEXT} are taken")
    return text


def _retry_after(deferral: ah.JudgeResponse.Defer) -> float:
    if not deferral.HasField("retry_after"):
        return DEFAULT_RETRY_SECONDS
    seconds = deferral.retry_after.seconds + deferral.retry_after.nanos / 1e9
    if seconds <= 0:
        raise BadAnswer(f"defer.retry_after is not more than 0: {seconds:g} s")
    return seconds


def _victims(uids: Iterable[str], question: Question) -> tuple[AdmitPod, ...]:
    pods = {pod.uid: pod for pod in question.others}
    unknown = [uid for uid in uids if uid not in pods]
    if unknown:
        raise BadAnswer(
            f"admit.victim_pod_uids names none of the other pods: {quoted(unknown[0][:64])}"
        )
    return tuple(pods[uid] for uid in dict.fromkeys(uids))

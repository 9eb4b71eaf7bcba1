"""Decisions of the past, as the journal of the Admission service keeps them.

Separate from `results` and `answers`, which are about what is asked now.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import types_pb2 as pb
from numalign_client.answers import allocations_of, pod_allocation_of, seconds_of, verdict_of
from numalign_client.results import ContainerAllocation, PodAllocation, Verdict, Victim


@dataclass(frozen=True, slots=True, kw_only=True)
class PastDecision:
    """One decision: what was answered, when, and how it came about.

    - `number` names it in the journal; `times`: how often it was made, from `first_time` to
      `last_time`, by somebody who asked again and heard the same;
    - `resize`: the pod was admitted and asked for other CPU or memory;
    - `took`: seconds that it took the first time;
    - `explanation`: the message with hints, masks and obstacles, as far as it was asked for.

    The others are as in a Decision.
    """

    number: int
    first_time: datetime
    last_time: datetime
    times: int
    pod_uid: str
    namespace: str
    name: str
    owner: str
    resize: bool
    verdict: Verdict
    handler: str = ""
    reason: str = ""
    message: str = ""
    handler_reason: str = ""
    retry_after: float | None = None
    took: float = 0.0
    allocations: tuple[ContainerAllocation, ...] = ()
    pod_allocation: PodAllocation | None = None
    victims: tuple[Victim, ...] = ()
    warnings: tuple[str, ...] = ()
    revision: int = 0
    explanation: pb.Explanation = field(default_factory=pb.Explanation)

    @property
    def admitted(self) -> bool:
        """Whether the pod could start."""
        return self.verdict is Verdict.ADMITTED

    @property
    def summary(self) -> str:
        """The explanation as a paragraph; empty unless it was asked for."""
        return self.explanation.summary

    @property
    def would_fit(self) -> str:
        """What would have fitted in place of a pod that was refused, where that is certain."""
        return "; ".join(o.would_fit for o in self.explanation.obstacles if o.would_fit)

    def __str__(self) -> str:
        """The pod and the verdict, with reason and message if there are any."""
        why = ": ".join(filter(None, (self.reason, self.message)))
        return f"{self.namespace}/{self.name} {self.verdict}" + (f" ({why})" if why else "")


@dataclass(frozen=True, slots=True)
class History:
    """Decisions, the newest first; `left_out`: how many more the limit left out.

    `kept_since` is when the oldest one that the journal has was made, None if it is empty.
    """

    decisions: tuple[PastDecision, ...]
    left_out: int
    kept_since: datetime | None


_VERDICTS = {
    Verdict.ADMITTED: pb.VERDICT_ADMITTED,
    Verdict.REJECTED: pb.VERDICT_REJECTED,
    Verdict.DEFERRED: pb.VERDICT_DEFERRED,
}


def decisions_request(
    *,
    verdicts: Iterable[Verdict | str],
    reasons: Iterable[str],
    pod: str,
    owner: str,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    explanations: bool,
) -> dc.ListDecisionsRequest:
    """The request. Raises ValueError for a verdict or a time that is none."""
    wanted = dc.DecisionFilter(
        verdicts=[_VERDICTS[Verdict(verdict)] for verdict in verdicts],
        reasons=reasons,
        pod=pod,
        owner=owner,
    )
    for name, moment in (("since", since), ("until", until)):
        if moment is None:
            continue
        if moment.tzinfo is None:
            raise ValueError(f"{name} must have a time zone, not be {moment.isoformat()}")
        getattr(wanted, name).FromDatetime(moment.astimezone(UTC))
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    return dc.ListDecisionsRequest(filter=wanted, limit=limit, with_explanations=explanations)


def decision_request(pod: str, number: int) -> dc.GetDecisionRequest:
    """The request. Raises ValueError unless exactly one of the two is named."""
    if bool(pod) == bool(number):
        raise ValueError("either a pod or the number of a decision must be named")
    return dc.GetDecisionRequest(number=number) if number else dc.GetDecisionRequest(pod=pod)


def history(message: dc.ListDecisionsResponse) -> History:
    """The decisions that were found."""
    kept = _time(message.kept_since) if message.HasField("kept_since") else None
    return History(tuple(map(past_decision, message.decisions)), message.left_out, kept)


def past_decision(message: dc.DecisionRecord) -> PastDecision:
    """One decision. Raises AdmissionError for a verdict that is none known here."""
    return PastDecision(
        number=message.number,
        first_time=_time(message.first_time),
        last_time=_time(message.last_time),
        times=message.times,
        pod_uid=message.pod_uid,
        namespace=message.namespace,
        name=message.name,
        owner=message.owner,
        resize=message.operation == pb.OPERATION_RESIZE,
        verdict=verdict_of(message.verdict),
        handler=message.handler,
        reason=message.reason,
        message=message.message,
        handler_reason=message.handler_reason,
        retry_after=seconds_of(message),
        took=message.took.ToNanoseconds() / 1e9,
        allocations=allocations_of(message.allocations),
        pod_allocation=pod_allocation_of(message),
        victims=tuple(Victim(v.pod_uid, v.namespace, v.name) for v in message.victims),
        warnings=tuple(message.warnings),
        revision=message.revision,
        explanation=message.explanation,
    )


def _time(time: Timestamp) -> datetime:
    return datetime.fromtimestamp(time.ToNanoseconds() / 1e9, UTC)

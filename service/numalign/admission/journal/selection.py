"""What a caller may ask of the journal, and whether a decision is on a pod.

Separate from the index, which finds decisions, and of pods only such that may be theirs. Pure
functions over messages.
"""

from __future__ import annotations

from numalign.errors import FieldViolation, InvalidInput
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import types_pb2 as pb


def check_filter(wanted: dc.DecisionFilter) -> None:
    """Refuse a filter that says what cannot be. Raises InvalidInput naming the fields."""
    known = set(pb.Verdict.values()) - {pb.VERDICT_UNSPECIFIED}
    wrong = [
        FieldViolation(f"filter.verdicts[{i}]", f"unknown verdict {verdict}")
        for i, verdict in enumerate(wanted.verdicts)
        if verdict not in known
    ]
    times = (("since", wanted.since), ("until", wanted.until))
    wrong += [
        FieldViolation(f"filter.{name}.nanos", f"must be 0 to 999999999, not {time.nanos}")
        for name, time in times
        if not 0 <= time.nanos < 10**9
    ]
    if wrong:
        raise InvalidInput(*wrong)


def is_of_pod(record: dc.DecisionRecord, pod: str) -> bool:
    """Whether the decision is on this pod: a UID, `<namespace>/<name>` or a name."""
    return pod in {record.pod_uid, f"{record.namespace}/{record.name}", record.name}

"""Which decisions of the journal a caller wants.

Separate from the files, which know no filters. Pure functions over messages.
"""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.timestamp_pb2 import Timestamp

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


def is_wanted(record: dc.DecisionRecord, wanted: dc.DecisionFilter) -> bool:
    """Whether the filter lets the decision through."""
    return (
        (not wanted.verdicts or record.verdict in wanted.verdicts)
        and (not wanted.reasons or record.reason in wanted.reasons)
        and (not wanted.pod or is_of_pod(record, wanted.pod))
        and (not wanted.owner or record.owner == wanted.owner)
        and (not wanted.HasField("since") or _at(record.last_time) >= _at(wanted.since))
        and (not wanted.HasField("until") or _at(record.first_time) < _at(wanted.until))
    )


def is_of_pod(record: dc.DecisionRecord, pod: str) -> bool:
    """Whether the decision is on this pod: a UID, `<namespace>/<name>` or a name."""
    return pod in {record.pod_uid, f"{record.namespace}/{record.name}", record.name}


def merged(entries: Iterable[dc.JournalEntry]) -> dict[int, dc.DecisionRecord]:
    """The decisions of a journal by number, ascending, each as often as it was made."""
    records: dict[int, dc.DecisionRecord] = {}
    for entry in entries:
        if entry.HasField("decision"):
            records[entry.decision.number] = entry.decision
        elif entry.HasField("again") and entry.again.number in records:
            record = records[entry.again.number]
            record.times = entry.again.times
            record.last_time.CopyFrom(entry.again.last_time)
    return records


def _at(time: Timestamp) -> tuple[int, int]:
    return time.seconds, time.nanos

"""Answers from what the journal has kept: which decisions, read from the files one by one.

Separate from the journal, which notes and writes, and says when it is safe to read. Blocking; the
journal calls it from a thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from numalign.admission.journal.index import DecisionIndex, Indexed
from numalign.admission.journal.segments import Segments
from numalign.admission.journal.selection import is_of_pod
from numalign.errors import NotFound
from numalign.v1 import decisions_pb2 as dc

DEFAULT_LIMIT = 100


def listed(
    index: DecisionIndex, segments: Segments, request: dc.ListDecisionsRequest
) -> dc.ListDecisionsResponse:
    """The decisions asked for, the newest first. Raises OSError."""
    found = index.found(request.filter)
    most = request.limit or DEFAULT_LIMIT
    pod = request.filter.pod
    if pod:
        # Which of these are on the pod is known only once they are read.
        of_pod = [record for record in _read(segments, found) if is_of_pod(record, pod)]
        left_out, shown = len(of_pod[most:]), of_pod[:most]
    else:
        left_out, shown = len(found[most:]), _read(segments, found[:most])
    if not request.with_explanations:
        for record in shown:
            record.ClearField("explanation")
    response = dc.ListDecisionsResponse(decisions=shown, left_out=left_out)
    if index.kept_since is not None:
        response.kept_since.FromNanoseconds(index.kept_since)
    return response


def got(
    index: DecisionIndex, segments: Segments, request: dc.GetDecisionRequest
) -> dc.DecisionRecord:
    """One decision. Raises NotFound saying how far back the journal goes, and OSError."""
    if request.WhichOneof("decision") == "number":
        numbered = index.numbered(request.number)
        if numbered is not None:
            return _read(segments, [numbered])[0]
        what = f"number: the journal has no decision {request.number}"
    else:
        for one in index.found(dc.DecisionFilter(pod=request.pod)):
            record = _read(segments, [one])[0]
            if is_of_pod(record, request.pod):
                return record
        what = f'pod: the journal has no decision on "{request.pod}"'
    raise NotFound(f"{what}: {_extent(index)}")


def _read(segments: Segments, found: Sequence[Indexed]) -> list[dc.DecisionRecord]:
    entries = segments.read_at([one.place for one in found])
    return [
        one.brought_up_to_date(entry.decision) for one, entry in zip(found, entries, strict=True)
    ]


def _extent(index: DecisionIndex) -> str:
    if index.kept_since is None:
        return "it is empty"
    oldest = Timestamp(seconds=index.kept_since // 10**9)
    many = "1 decision" if len(index) == 1 else f"{len(index)} decisions"
    return f"it has {many} and goes back to {oldest.ToJsonString()}"

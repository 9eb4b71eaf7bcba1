"""A decision as the journal keeps it, from the call and its answer.

Separate from the journal, which knows no calls. Pure but for the clock that it is handed.
"""

from __future__ import annotations

from numalign.v1 import admission_pb2 as ad
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import types_pb2 as pb


def is_decision(request: ad.AdmitRequest, response: ad.AdmitResponse) -> bool:
    """Whether the answer decided anything: not a dry run's, and not one from the record."""
    return not (request.dry_run or response.dry_run or response.already_admitted)


def record_of(
    request: ad.AdmitRequest, response: ad.AdmitResponse, owner: str, seconds: float, now: int
) -> dc.DecisionRecord:
    """The decision. `seconds` is how long it took, `now` nanoseconds since the epoch."""
    pod = request.pod.metadata
    record = dc.DecisionRecord(
        pod_uid=pod.uid,
        namespace=pod.namespace or "default",
        name=pod.name,
        owner=owner,
        operation=request.operation or pb.OPERATION_ADD,
        verdict=response.verdict,
        handler=response.handler,
        reason=response.reason,
        message=response.message,
        handler_reason=response.handler_reason,
        allocations=response.allocations,
        victims=response.victims,
        warnings=response.warnings,
        revision=response.revision,
    )
    record.last_time.FromNanoseconds(now)
    record.took.FromNanoseconds(round(seconds * 1e9))
    if response.HasField("retry_after"):
        record.retry_after.CopyFrom(response.retry_after)
    if response.HasField("pod_allocation"):
        record.pod_allocation.CopyFrom(response.pod_allocation)
    return record


def leave_out_details(explanation: pb.Explanation) -> None:
    """Take the merges and calls out of an explanation."""
    explanation.ClearField("merges")
    explanation.ClearField("allocate_calls")
    explanation.ClearField("plugin_calls")

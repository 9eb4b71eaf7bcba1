"""The journal of decisions of an Admission service, over the state directory.

Separate from the part, which is whole without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from grpc.aio import AioRpcError

from numalign.admission.journal.journal import Explanations, Journal
from numalign.admission.journal.segments import Segments
from numalign.config.settings import Settings
from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import topology_pb2_grpc as tm_grpc
from numalign.v1 import types_pb2 as pb

_EXPLAIN_SECONDS = 10.0

_log = get_logger("journal")


def journal_directory(settings: Settings) -> Path:
    """Where the files are."""
    return settings.state_directory / "journal"


def open_journal(
    settings: Settings, topology: tm_grpc.TopologyManagerAsyncStub, metrics: Metrics
) -> Journal | None:
    """The journal; None where the settings want none. Raises StateError naming the path."""
    if not settings.journal.size:
        return None
    segments = Segments(journal_directory(settings), settings.journal.size)
    if segments.cut_off:
        _log.warning(
            "the end of the journal could not be read and was cut off", bytes=segments.cut_off
        )

    async def explain(pod_uids: Sequence[str]) -> Explanations:
        told: dict[str, pb.Explanation] = {}
        left = list(pod_uids)
        asked_about = 0
        while left and len(left) != asked_about:
            asked_about = len(left)
            request = tm.ExplainAdmissionsRequest(pod_uids=left)
            try:
                answer = await topology.ExplainAdmissions(request, timeout=_EXPLAIN_SECONDS)
            except AioRpcError as error:
                # As at the end of all services: what is missing is said where somebody looks.
                _log.info("decisions are noted without explanations", error=error.details() or "")
                why = f"Not explained: the Topology Manager did not answer ({error.code().name})."
                return {uid: pb.Explanation(summary=why) for uid in left} | told
            # An answer has as many as fit into a message.
            told |= {one.pod_uid: one.explanation for one in answer.admissions}
            left = [uid for uid in left if uid not in told]
        return told

    return Journal(segments, explain, metrics.counter("numalign_journal_dropped_total"))

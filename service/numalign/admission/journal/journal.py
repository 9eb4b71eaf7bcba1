"""The journal of decisions: what was decided of late, so that it can be explained afterwards.

An answer never waits for it. A decision is noted in memory; a moment later all that was noted
is written at once, in a thread, with the explanations that the Topology Manager remembers. An
agent that asks again and hears the same adds to the count of its last decision.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from google.protobuf.timestamp_pb2 import Timestamp

from numalign.admission.journal.entry import leave_out_details
from numalign.admission.journal.segments import Segments
from numalign.admission.journal.selection import check_filter, is_of_pod, is_wanted, merged
from numalign.errors import NotFound, Unavailable
from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Counter
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import types_pb2 as pb

WRITTEN_AFTER_SECONDS = 0.5
"""How long a decision may be in memory alone."""

DEFAULT_LIMIT = 100
DECIDER = "topology-manager"
"""The handler that explains what it decides."""

_MOST_PODS_COMPARED = 1024
_MOST_PENDING = 64
"""As many are written at once without waiting: ways are remembered for a few pods only."""

Explanations = Mapping[str, pb.Explanation]
Explain = Callable[[Sequence[str]], Awaitable[Explanations]]
"""Explains how these pods were decided on, by UID, as far as that is remembered."""

_log = get_logger("journal")

_Said = tuple[int, int, str, str, str]


@dataclass(slots=True)
class _Last:
    """The last decision on a pod: what was said, and how often so far."""

    said: _Said
    number: int
    times: int


class Journal:
    """The decisions of one Admission service."""

    def __init__(self, segments: Segments, explain: Explain, dropped: Counter) -> None:
        """Go on with what the files hold. `dropped` counts what could not be written."""
        self._segments = segments
        self._explain = explain
        self._dropped = dropped
        self._pending: dict[int, dc.DecisionRecord] = {}
        self._again: dict[int, dc.DecisionAgain] = {}
        self._last: OrderedDict[str, _Last] = OrderedDict()
        self._files = asyncio.Lock()
        self._flushing: asyncio.Task[None] | None = None
        self._failing = False
        self._many = asyncio.Event()
        numbers = merged(segments.read())
        self._number = max(numbers, default=0)
        self._oldest = min(numbers, default=0)
        self._newer_from = self._oldest

    def note(self, record: dc.DecisionRecord) -> None:
        """A decision was made now; its number, count and first time are given here."""
        said = _said(record)
        last = self._last.get(record.pod_uid)
        if (
            last is not None
            and last.said == said
            and last.number >= self._oldest
            and record.verdict != pb.VERDICT_ADMITTED
        ):
            self._note_again(last, record.last_time)
        else:
            self._number += 1
            record.number, record.times = self._number, 1
            record.first_time.CopyFrom(record.last_time)
            self._pending[record.number] = record
            self._last[record.pod_uid] = _Last(said, record.number, 1)
            if len(self._last) > _MOST_PODS_COMPARED:
                self._last.popitem(last=False)
        if len(self._pending) >= _MOST_PENDING:
            self._many.set()
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().create_task(self._flush_soon())

    async def list(self, request: dc.ListDecisionsRequest) -> dc.ListDecisionsResponse:
        """The decisions asked for, the newest first. Raises InvalidInput, Unavailable."""
        check_filter(request.filter)
        records = await self._records()
        found = [r for r in records.values() if is_wanted(r, request.filter)]
        found.sort(key=lambda r: (r.last_time.ToNanoseconds(), r.number), reverse=True)
        shown = found[: request.limit or DEFAULT_LIMIT]
        if not request.with_explanations:
            for record in shown:
                record.ClearField("explanation")
        response = dc.ListDecisionsResponse(decisions=shown, left_out=len(found) - len(shown))
        if records:
            response.kept_since.CopyFrom(next(iter(records.values())).first_time)
        return response

    async def get(self, request: dc.GetDecisionRequest) -> dc.DecisionRecord:
        """One decision. Raises NotFound saying how far back the journal goes, Unavailable."""
        records = await self._records()
        if request.WhichOneof("decision") == "number":
            found = records.get(request.number)
            what = f"number: the journal has no decision {request.number}"
        else:
            of_pod = [r for r in records.values() if is_of_pod(r, request.pod)]
            found = max(of_pod, key=lambda r: r.last_time.ToNanoseconds(), default=None)
            what = f'pod: the journal has no decision on "{request.pod}"'
        if found is not None:
            return found
        there = "it is empty"
        if records:
            oldest = Timestamp(seconds=next(iter(records.values())).first_time.seconds)
            many = "1 decision" if len(records) == 1 else f"{len(records)} decisions"
            there = f"it has {many} and goes back to {oldest.ToJsonString()}"
        raise NotFound(f"{what}: {there}")

    async def flush(self) -> None:
        """Write what was noted so far."""
        async with self._files:
            self._many.clear()
            pending, self._pending = self._pending, {}
            again, self._again = self._again, {}
            if not pending and not again:
                return
            await self._add_explanations(pending.values())
            entries = [dc.JournalEntry(decision=self._fitting(r)) for r in pending.values()]
            entries += [dc.JournalEntry(again=entry) for entry in again.values()]
            try:
                if await asyncio.to_thread(self._segments.append, entries):
                    self._oldest, self._newer_from = self._newer_from, self._number + 1
            except OSError as error:
                self._dropped.inc(len(entries))
                if not self._failing:
                    _log.error("decisions cannot be written to the journal", error=str(error))
                self._failing = True
            else:
                self._failing = False

    async def close(self) -> None:
        """Write what is left and give the files back."""
        if self._flushing is not None:
            self._flushing.cancel()
            await asyncio.gather(self._flushing, return_exceptions=True)
        await self.flush()
        self._segments.close()

    async def _flush_soon(self) -> None:
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(WRITTEN_AFTER_SECONDS):
                    await self._many.wait()
        finally:
            self._flushing = None
        await self.flush()

    async def _records(self) -> dict[int, dc.DecisionRecord]:
        # A caller that hangs up must not take what was about to be written with it.
        await asyncio.shield(asyncio.ensure_future(self.flush()))
        async with self._files:
            try:
                return merged(await asyncio.to_thread(self._segments.read))
            except OSError as error:
                path = error.filename or self._segments.newer
                raise Unavailable(f"journal {path}: {error.strerror}") from error

    def _note_again(self, last: _Last, time: Timestamp) -> None:
        last.times += 1
        record = self._pending.get(last.number)
        if record is not None:
            record.times = last.times
            record.last_time.CopyFrom(time)
        else:
            self._again[last.number] = dc.DecisionAgain(
                number=last.number, last_time=time, times=last.times
            )

    async def _add_explanations(self, records: Collection[dc.DecisionRecord]) -> None:
        """Explain decisions of the Topology Manager; of two on one pod only the last is known."""
        last = {r.pod_uid: r for r in records if r.handler in {"", DECIDER}}
        if not last:
            return
        for uid, explanation in (await self._explain(tuple(last))).items():
            last[uid].explanation.CopyFrom(explanation)

    def _fitting(self, record: dc.DecisionRecord) -> dc.DecisionRecord:
        """The decision, without the merges where they would push out all the others."""
        if record.ByteSize() > self._segments.largest:
            explanation = record.explanation
            leave_out_details(explanation)
            explanation.summary += " (Merges and calls are left out: they are too long to keep.)"
        if record.ByteSize() > self._segments.largest:
            record.ClearField("explanation")
            record.explanation.summary = "(The explanation is left out: it is too long to keep.)"
        return record


def _said(record: dc.DecisionRecord) -> _Said:
    return (
        record.operation,
        record.verdict,
        record.handler,
        record.reason,
        record.message,
    )

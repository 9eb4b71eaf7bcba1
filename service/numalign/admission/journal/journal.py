"""The journal of decisions: what was decided of late, so that it can be explained afterwards.

An answer never waits for it. A decision is noted in memory; a moment later all that was noted
is written at once, in a thread, with the explanations that the Topology Manager remembers. An
agent that asks again and hears the same adds to the count of its last decision. Who asks has those
decisions read that the index finds, and no others.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from google.protobuf.timestamp_pb2 import Timestamp

from numalign.admission.journal.entry import leave_out_details
from numalign.admission.journal.index import DecisionIndex
from numalign.admission.journal.lookup import got, listed
from numalign.admission.journal.segments import Segments
from numalign.admission.journal.selection import check_filter
from numalign.errors import Unavailable
from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Counter
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import types_pb2 as pb

WRITTEN_AFTER_SECONDS = 0.5
"""How long a decision may be in memory alone."""

DECIDER = "topology-manager"
"""The handler that explains what it decides."""

_MOST_PODS_COMPARED = 1024
_MOST_PENDING = 64
"""As many are written at once without waiting: ways are remembered for a few pods only."""

Explanations = Mapping[str, pb.Explanation]
Explain = Callable[[Sequence[str]], Awaitable[Explanations]]
"""Explains how these pods were decided on, by UID, as far as that is remembered."""

T = TypeVar("T")

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
        self._index = DecisionIndex(segments.read())
        self._number = self._index.newest

    def note(self, record: dc.DecisionRecord) -> None:
        """A decision was made now; its number, count and first time are given here."""
        said = _said(record)
        last = self._last.get(record.pod_uid)
        if (
            last is not None
            and last.said == said
            and last.number >= self._index.oldest
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
        return await self._read(lambda: listed(self._index, self._segments, request))

    async def get(self, request: dc.GetDecisionRequest) -> dc.DecisionRecord:
        """One decision. Raises NotFound saying how far back the journal goes, Unavailable."""
        return await self._read(lambda: got(self._index, self._segments, request))

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
                written = await asyncio.to_thread(self._segments.append, entries)
            except OSError as error:
                self._dropped.inc(len(entries))
                if not self._failing:
                    _log.error("decisions cannot be written to the journal", error=str(error))
                self._failing = True
            else:
                self._failing = False
                for entry, position in zip(entries, written.positions, strict=True):
                    self._index.note(entry, position)
                if written.full:
                    self._index.let_go_of_older()

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

    async def _read(self, answer: Callable[[], T]) -> T:
        """Answer in a thread from what is written. Raises what `answer` does, and Unavailable."""
        # A caller that hangs up must not take what was about to be written with it.
        await asyncio.shield(asyncio.ensure_future(self.flush()))
        async with self._files:
            try:
                try:
                    return await asyncio.to_thread(answer)
                except OSError as error:
                    # Somebody has changed the files: what counts is what they hold.
                    _log.warning("the journal's files are not as they were left", error=str(error))
                    self._index = await asyncio.to_thread(
                        lambda: DecisionIndex(self._segments.read())
                    )
                    return await asyncio.to_thread(answer)
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

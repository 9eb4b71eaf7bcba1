"""The agent's journal: knows every pod's row, and keeps the file behind it.

What it knows in memory is what counts while the agent runs. A write that fails (a full disk)
stops nobody: it is counted, logged once, and made good when there is room again.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from numalign.errors import StateError
from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign_agent.journal.rows import Entry, PodRow, Problem
from numalign_agent.journal.store import JournalStore
from numalign_agent.metrics import JOURNAL_FAILURES, JOURNAL_LOST
from numalign_agent.pod import AgentPod
from numalign_agent.status.port import EventType

FILE_NAME = "journal.db"
RETRY_SECONDS = 10.0
_MOST_WAITING = 1000

_log = get_logger("journal")


class Journal:
    """Rows of pods and entries, and a StatusSink. Open it with `open`."""

    def __init__(
        self, store: JournalStore, rows: Mapping[str, PodRow], keep: int, metrics: Metrics
    ) -> None:
        self._store = store
        self._rows = dict(rows)
        self._keep = keep
        self._metrics = metrics
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._unwritten: set[str] = set()
        self._gone: set[str] = set()
        self._entries: deque[Entry] = deque()
        self._writing: asyncio.Future[None] | None = None
        self._wanted = asyncio.Event()
        self._failing = False
        self._problems = store.problems()
        self._clock: Callable[[], float] = time.time
        ranks = [row.rank for row in rows.values() if row.rank is not None]
        self._next_rank = max(ranks, default=0) + 1

    @classmethod
    def open(cls, directory: Path, keep: int, metrics: Metrics) -> Journal:
        """The journal in `directory`; `keep` is how many entries stay. Raises StateError."""
        store = JournalStore.open(directory / FILE_NAME)
        return cls(store, {row.uid: row for row in store.pods()}, keep, metrics)

    def row(self, pod_uid: str) -> PodRow | None:
        """What is known of a pod."""
        return self._rows.get(pod_uid)

    def rows(self) -> Mapping[str, PodRow]:
        """What is known of all pods."""
        return self._rows

    async def decided(
        self, pod: AgentPod, verdict: str, *, handler: str = "", reason: str = "", message: str = ""
    ) -> None:
        """Admission decided on a pod. When this returns it is written, if that was possible."""
        row = self._row_of(pod)
        rank = row.rank
        if verdict == "admitted" and rank is None:
            rank, self._next_rank = self._next_rank, self._next_rank + 1
        if (verdict, reason, message) != (row.verdict, row.reason, row.message):
            self._append(pod, "decision", verdict, reason, message)
        row = replace(
            row,
            rank=rank,
            verdict=verdict,
            handler=handler,
            reason=reason,
            message=message,
            decided_at=row.decided_at or self._clock(),
        )
        self._put(row)
        if not self._failing:
            await self._write()

    def set_status(self, pod: AgentPod, status: Mapping[str, Any]) -> None:
        """See StatusSink."""
        self._put(replace(self._row_of(pod), status=status))

    def event(self, pod: AgentPod, kind: EventType, reason: str, message: str) -> None:
        """See StatusSink."""
        self._append(pod, "event", kind.value, reason, message)

    def forget(self, pod_uid: str) -> None:
        """See StatusSink: the pod is gone, and may come back as a new one."""
        if self._rows.pop(pod_uid, None) is not None:
            self._unwritten.discard(pod_uid)
            self._gone.add(pod_uid)
            self._wanted.set()

    def judge_anew(self, pod_uid: str) -> None:
        """Forget what was decided on a pod and became of it, but not its place in the order."""
        row = self._rows[pod_uid]
        self._put(
            replace(row, verdict="", handler="", reason="", message="", decided_at=0.0, status={})
        )

    async def problems(self, problems: Sequence[Problem]) -> None:
        """What sources cannot use now; written if it is something else than before."""
        if problems == self._problems:
            return
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._writer, self._store.write_problems, problems)
        except StateError as error:
            self._failed(error)
        else:
            self._problems = list(problems)

    def recheck(self, pod_uid: str) -> None:
        """See StatusSink: nothing is held back here."""

    async def run(self) -> None:
        """Write what there is to write, until cancelled."""
        while True:
            await self._wanted.wait()
            await self._write()
            if self._failing:
                await asyncio.sleep(RETRY_SECONDS)
                self._wanted.set()

    async def close(self) -> None:
        """Write what is left, and let go of the file."""
        await self._write()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._writer, self._store.close)
        self._writer.shutdown()

    def _row_of(self, pod: AgentPod) -> PodRow:
        row = self._rows.get(pod.uid)
        if row is None:
            return PodRow(uid=pod.uid, namespace=pod.namespace, name=pod.name, source=pod.source)
        return row

    def _put(self, row: PodRow) -> None:
        self._rows[row.uid] = row
        self._gone.discard(row.uid)
        self._unwritten.add(row.uid)
        self._wanted.set()

    def _append(self, pod: AgentPod, kind: str, type_: str, reason: str, message: str) -> None:
        if len(self._entries) >= _MOST_WAITING:
            self._entries.popleft()
            self._metrics.counter(JOURNAL_LOST).inc()
        self._entries.append(
            Entry(
                at=self._clock(),
                kind=kind,
                uid=pod.uid,
                pod=f"{pod.namespace}/{pod.name}",
                type=type_,
                reason=reason,
                message=message,
            )
        )
        self._wanted.set()

    async def _write(self) -> None:
        """Write everything that is not on disk yet; on failure it stays to be written."""
        self._wanted.clear()
        rows = [self._rows[uid] for uid in self._unwritten]
        gone, entries = set(self._gone), list(self._entries)
        if not rows and not gone and not entries:
            return
        self._unwritten.clear()
        self._gone.clear()
        self._entries.clear()
        self._writing = asyncio.ensure_future(self._carry_out(rows, gone, entries))
        # Whoever waits may be cancelled; a write that still queues would then never be made.
        await asyncio.shield(self._writing)

    async def _carry_out(
        self, rows: Sequence[PodRow], gone: set[str], entries: Sequence[Entry]
    ) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(
                self._writer, self._store.write, rows, gone, entries, self._keep
            )
        except StateError as error:
            self._failed(error)
            self._unwritten |= {row.uid for row in rows if row.uid in self._rows}
            self._gone |= gone - self._rows.keys()
            self._entries.extendleft(reversed(entries))
        else:
            self._worked()

    def _failed(self, error: StateError) -> None:
        self._metrics.counter(JOURNAL_FAILURES).inc()
        if not self._failing:
            self._failing = True
            _log.error("the journal cannot be written; the agent goes on", error=str(error))

    def _worked(self) -> None:
        if self._failing:
            self._failing = False
            _log.info("the journal is written again")


@contextlib.contextmanager
def reading(directory: Path) -> Iterator[JournalStore]:
    """Read the journal of a state directory. Raises StateError."""
    store = JournalStore.open_to_read(directory / FILE_NAME)
    try:
        yield store
    finally:
        store.close()

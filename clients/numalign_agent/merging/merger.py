"""The one place that merges and sends: sets of all sources in, changes to the loop out.

Thin: what a set changes is decided in `merge`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

from numalign.telemetry.logs import get_logger
from numalign_agent.changes import PodChange
from numalign_agent.merging.merge import Table, merge
from numalign_agent.pod import AgentPod
from numalign_agent.status.port import EventType

CAPACITY = 50
"""Changes that wait for the loop before a source has to wait (LOOP-2)."""

SayEvent = Callable[[AgentPod, EventType, str, str], None]

_log = get_logger("agent.merging")


class SourceMerger:
    """Merges what sources deliver, one set at a time, and puts the changes in the loop's queue.

    Pods of the table are never changed in place, so the loop may keep what it is sent.
    """

    def __init__(
        self,
        queue: asyncio.Queue[PodChange],
        event: SayEvent,
        now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
    ) -> None:
        self._queue = queue
        self._event = event
        self._now = now
        self._tables: dict[str, Table] = {}
        self._turn = asyncio.Lock()

    @property
    def delivered(self) -> frozenset[str]:
        """The sources whose first set was merged, even an empty one (MERGE-6)."""
        return frozenset(self._tables)

    async def deliver(self, source: str, pods: Sequence[AgentPod]) -> None:
        """Take in a set; waits while the queue is full. No set overtakes another."""
        async with self._turn:
            seen = seen_text(self._now())
            merged = merge(source, self._tables.get(source), pods, seen)
            for pod in merged.duplicates:
                self._refuse(source, pod)
            # The table first: a set whose changes are under way must not be merged again.
            self._tables[source] = merged.table
            for change in merged.changes:
                await self._queue.put(change)

    def _refuse(self, source: str, pod: AgentPod) -> None:
        text = duplicate_text(pod, source)
        _log.warning("two pods of one name", pod=f"{pod.namespace}/{pod.name}", source=source)
        self._event(pod, EventType.WARNING, "FailedValidation", text)


def duplicate_text(pod: AgentPod, source: str) -> str:
    """What is said of a pod whose name another one of the same set has (MERGE-2)."""
    return (
        f"Error validating pod {pod.full_name}({pod.uid}) from {source} "
        f'due to duplicate pod name "{pod.name}", ignoring'
    )


def seen_text(moment: datetime) -> str:
    """A moment with its offset, as RFC 3339 with nine digits of a second (MERGE-3)."""
    offset = moment.strftime("%z")
    zone = "Z" if offset == "+0000" else f"{offset[:3]}:{offset[3:5]}"
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond:06d}000{zone}"

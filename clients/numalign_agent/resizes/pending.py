"""Having resizes that wait evaluated: when something may have made room, and by time (RES-3).

The rules are numalign's own (`numalign.admission.resizes`), their state is in `book`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb
from numalign_agent.admitting.calls import AdmissionCalls
from numalign_agent.admitting.preempting import Preemption
from numalign_agent.metrics import DEFERRED_RESIZES, REQUESTED_RESIZES
from numalign_agent.pod import AgentPod
from numalign_agent.pods.manager import PodManager
from numalign_agent.resizes.book import ResizeBook
from numalign_agent.resizes.reading import changed_amounts
from numalign_agent.status.cache import StatusCache
from numalign_agent.status.port import EventType
from numalign_client.errors import AdmissionError

EVERY_SECONDS = 180.0
WHILE_NOT_READY_SECONDS = 30.0
PERIODIC = "periodic_retry"

_log = get_logger("resizes")


@dataclass(frozen=True, slots=True)
class ResizeParts:
    """What resizes work with.

    `granted` hears what a pod holds after a resize; `look` has pods synced; `turn` is held
    while Admission is asked.
    """

    book: ResizeBook
    calls: AdmissionCalls
    preemption: Preemption
    pods: PodManager
    cache: StatusCache
    turn: asyncio.Lock
    look: Callable[[Sequence[str]], None]
    granted: Callable[[str, ad.AdmitResponse], None]
    sources_ready: Callable[[], bool]
    metrics: Metrics


class PendingResizes:
    """Hears what happens to pods, and evaluates in a task of its own."""

    def __init__(self, parts: ResizeParts) -> None:
        self._on = parts
        self._wanted = asyncio.Event()
        self._trigger = PERIODIC

    def admitted(self, pod: AgentPod, asked: AgentPod, answer: ad.AdmitResponse) -> None:
        """A pod was admitted in the form `asked`, and is wanted as `pod` by now."""
        if self._on.book.admitted(pod, asked, answer):
            self._queue(pod.uid, "pods_added")

    def updated(self, pod: AgentPod, before: AgentPod | None) -> None:
        """A source changed a pod (HND-1)."""
        if before is None or not self._on.book.knows(pod.uid):
            return
        changes = changed_amounts(before, pod)
        if not changes:
            return
        for labels in changes:
            self._on.metrics.counter(REQUESTED_RESIZES).labels(*labels).inc()
        if self._on.book.is_pending(pod):
            self._queue(pod.uid, "pod_updated")
        else:
            self._on.book.settled(pod.uid)
            self._on.look((pod.uid,))

    def removed(self, pod_uids: Sequence[str]) -> None:
        """Pods are gone (HND-3)."""
        self._on.book.gone(pod_uids)
        self._evaluate("pods_removed")

    def reconciled(self, pod: AgentPod, before: AgentPod | None) -> None:
        """The status of a pod came back (HND-5)."""
        if before is not None and pod.is_terminal and not before.is_terminal:
            self._evaluate("pod_terminated")

    def ended(self) -> None:
        """A pod has ended on this node."""
        self._evaluate("pod_terminated")

    async def run(self) -> None:
        """Evaluate when something was triggered and every three minutes, until cancelled."""
        while True:
            ready = self._on.sources_ready()
            try:
                async with asyncio.timeout(EVERY_SECONDS if ready else WHILE_NOT_READY_SECONDS):
                    await self._wanted.wait()
            except TimeoutError:
                self._trigger = PERIODIC
            self._wanted.clear()
            if self._on.sources_ready():
                await self.evaluate(self._trigger)

    async def evaluate(self, trigger: str) -> None:
        """Look at every resize that waits once, in order."""
        on = self._on
        on.book.probing()
        for uid in on.book.queue:
            pod = on.pods.pod(uid)
            if pod is None or not on.book.is_pending(pod):
                on.book.settled(uid)
                continue
            try:
                answer = await self._ask(pod)
            except AdmissionError as error:
                _log.warning("a resize is not judged", pod_uid=uid, error=error.message)
                continue
            self._take_over(pod, answer, trigger)

    async def _ask(self, pod: AgentPod) -> ad.AdmitResponse:
        preempted: tuple[str, ...] = ()
        async with self._on.turn:
            while True:
                answer = await self._on.calls.admit(pod, preempted=preempted, resize=True)
                if not answer.victims:
                    return answer
                await self._on.preemption.end(answer.victims)
                preempted += tuple(victim.pod_uid for victim in answer.victims)

    def _take_over(self, pod: AgentPod, answer: ad.AdmitResponse, trigger: str) -> None:
        on = self._on
        waited = on.book.has_waited(pod.uid)
        outcome = on.book.answered(pod, answer)
        if outcome is None:
            return
        if answer.verdict == pb.VERDICT_ADMITTED:
            on.granted(pod.uid, answer)
            if waited:
                on.metrics.counter(DEFERRED_RESIZES).labels(trigger).inc()
        for event in outcome.events:
            on.cache.event(pod, EventType(event.type), event.reason, event.text)
        on.look(outcome.synced)

    def _queue(self, uid: str, trigger: str) -> None:
        self._on.book.queued(uid, self._on.pods.pods)
        self._evaluate(trigger)

    def _evaluate(self, trigger: str) -> None:
        if self._on.book.queue:
            self._trigger = trigger
            self._wanted.set()

"""What a decision on a pod brings about: its worker, its status, its events (ADM-10, ADM-11)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from numalign.telemetry.logs import get_logger
from numalign.v1 import admission_pb2 as ad
from numalign_agent.journal.journal import Journal
from numalign_agent.pod import AgentPod
from numalign_agent.pods.qos import qos_of
from numalign_agent.status.cache import StatusCache
from numalign_agent.status.compute import REJECTED_PREFIX, rejected
from numalign_agent.status.port import EventType
from numalign_agent.workers.work import EndedBy, Kill, Update, UpdateKind
from numalign_agent.workers.workers import Workers

UNEXPECTED = "UnexpectedAdmissionError"

_log = get_logger("admission")


class Granted(Protocol):
    """Hears of pods that were admitted."""

    def admitted(self, pod: AgentPod, asked: AgentPod, answer: ad.AdmitResponse) -> None:
        """`pod` as its source has it now was admitted in the form `asked`."""


class Effects:
    """Carries decisions out. Nothing here waits, except for the journal."""

    def __init__(
        self,
        workers: Workers,
        cache: StatusCache,
        journal: Journal,
        clock: Callable[[], float],
        granted: Granted,
    ) -> None:
        """Make it. `granted` is told before the worker is."""
        self._workers = workers
        self._cache = cache
        self._journal = journal
        self._clock = clock
        self._granted = granted

    async def note(self, pod: AgentPod, verdict: str, answer: ad.AdmitResponse) -> None:
        """Write the decision down, before anything follows from it."""
        await self._journal.decided(
            pod, verdict, handler=answer.handler, reason=answer.reason, message=answer.message
        )

    def admitted(self, pod: AgentPod, asked: AgentPod, answer: ad.AdmitResponse) -> None:
        """The pod may start; `asked` is the form in which it was judged."""
        for warning in answer.warnings:
            _log.warning("admitted with a warning", warning=warning)
        self._granted.admitted(pod, asked, answer)
        self.begin(pod)

    def rejected(self, pod: AgentPod, reason: str, message: str) -> None:
        """The pod must not run here, for good (ADM-10). What runs of it is ended."""
        self._cache.event(pod, EventType.WARNING, reason, message)
        work = self._workers.work(pod.uid)
        if work is not None:
            ended = EndedBy(reason, REJECTED_PREFIX + message)
            self._workers.update(Update(UpdateKind.KILL, pod, kill=Kill(ended_by=ended)))
            return
        before = self._cache.get(pod.uid)
        status = rejected(pod, reason, message, before, qos_of(pod), self._clock())
        self._cache.set(pod, status)

    def deferred(self, pod: AgentPod, answer: ad.AdmitResponse) -> None:
        """The pod may not start yet: it stays pending, and says why."""
        before = self._cache.get(pod.uid)
        if (before.get("reason"), before.get("message")) == (answer.reason, answer.message):
            return
        self._cache.event(pod, EventType.WARNING, answer.reason, answer.message)
        if self._workers.work(pod.uid) is None:
            waiting = {"phase": "Pending", "reason": answer.reason, "message": answer.message}
            self._cache.set(pod, {**before, **waiting})

    def begin(self, pod: AgentPod) -> None:
        """Hand a pod to its worker."""
        self._workers.update(
            Update(
                UpdateKind.CREATE if self._workers.work(pod.uid) is None else UpdateKind.UPDATE,
                pod,
                seen_at=self._clock(),
            )
        )

"""What is done when sources change their pods: additions, updates, removals, reconciliations.

Everything here is done at once and waits for nobody: decisions are the admitter's, containers
the workers'.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from numalign.telemetry.logs import get_logger
from numalign_agent.admitting.admitter import Admitter
from numalign_agent.admitting.order import by_creation
from numalign_agent.changes import Operation, PodChange
from numalign_agent.journal.journal import Journal
from numalign_agent.pod import AgentPod
from numalign_agent.pods.manager import PodManager
from numalign_agent.status.cache import StatusCache
from numalign_agent.status.conditions import ready_differs
from numalign_agent.workers.work import Update, UpdateKind
from numalign_agent.workers.workers import Workers

_log = get_logger("pods")


class ResizeHandlers(Protocol):
    """Hears what may make a pending resize possible, or a new one (HND-1, HND-3, HND-5)."""

    def updated(self, pod: AgentPod, before: AgentPod | None) -> None:
        """A source changed a pod."""

    def removed(self, pod_uids: Sequence[str]) -> None:
        """Pods are gone."""

    def reconciled(self, pod: AgentPod, before: AgentPod | None) -> None:
        """The status of a pod came back."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Questions and requests to other parts. `clean_up` is told the UID of a pod that is gone."""

    sources_ready: Callable[[], bool]
    runs: Callable[[str], bool]
    remove_dead: Callable[[str], None]
    release_soon: Callable[[], None]


class PodHandlers:
    """Handles each operation on a batch of pods (LOOP-3)."""

    def __init__(
        self,
        pods: PodManager,
        workers: Workers,
        admitter: Admitter,
        cache: StatusCache,
        journal: Journal,
        resizes: ResizeHandlers,
        around: Surroundings,
    ) -> None:
        self._pods = pods
        self._workers = workers
        self._admitter = admitter
        self._cache = cache
        self._journal = journal
        self._resizes = resizes
        self._around = around

    def handle(self, change: PodChange) -> None:
        """Do what the change asks for."""
        match change.operation:
            case Operation.ADD:
                self._add(change)
            case Operation.UPDATE | Operation.DELETE:
                # A deletion is graceful, so it is a change like any other.
                for pod in change.pods:
                    self._update(pod)
            case Operation.REMOVE:
                self._remove(change)
            case Operation.RECONCILE:
                for pod in change.pods:
                    self._reconcile(pod)

    def sync(self, pod: AgentPod) -> None:
        """Have the worker of a pod look at it (HND-6)."""
        if pod.is_mirror:
            _log.error("a mirror pod has no worker", pod=pod.full_name)
        elif self._workers.work(pod.uid) is not None:
            self._workers.update(Update(UpdateKind.SYNC, pod))

    def is_skipped(self, pod: AgentPod) -> bool:
        """Whether Admission is not asked about a pod: it ends, or has ended (ADM-9)."""
        return self._is_ending(pod.uid) or pod.is_terminal or pod.deletion_timestamp is not None

    def _is_ending(self, uid: str) -> bool:
        work = self._workers.work(uid)
        return work is not None and work.end_requested

    def _add(self, change: PodChange) -> None:
        to_ask = []
        for pod in by_creation(change.pods):
            self._pods.put(pod)
            if pod.is_mirror:
                self._mirror_changed(pod)
                continue
            row = self._journal.row(pod.uid)
            if row is not None and row.is_over and not pod.is_terminal:
                self._add_ended(pod, rejected=row.is_rejected)
                continue
            if self._is_ending(pod.uid):
                # Brought back before it was gone: housekeeping begins it anew (WRK-8).
                self._workers.update(Update(UpdateKind.CREATE, pod))
            to_ask.append(pod.uid)
        self._admitter.add(to_ask)

    def _add_ended(self, pod: AgentPod, *, rejected: bool) -> None:
        """A pod that ended before this agent began, and whose source cannot know it."""
        if not rejected:
            ended = pod.replacing("status", **self._cache.get(pod.uid))
            self._workers.update(Update(UpdateKind.CREATE, ended))

    def _update(self, pod: AgentPod) -> None:
        before = self._pods.pod(pod.uid)
        self._pods.put(pod)
        if pod.is_mirror:
            self._mirror_changed(pod)
            return
        if self._admitter.is_undecided(pod.uid):
            self._admitter.wake(pod.uid)
            if self._workers.work(pod.uid) is None:
                return
        self._resizes.updated(pod, before)
        if self._workers.work(pod.uid) is not None:
            self._workers.update(Update(UpdateKind.UPDATE, pod))

    def _remove(self, change: PodChange) -> None:
        for pod in change.pods:
            self._pods.remove(pod)
            if pod.is_mirror:
                self._mirror_changed(pod, gone=True)
                continue
            self._admitter.forget(pod.uid)
            self._delete(pod)
        self._resizes.removed([pod.uid for pod in change.pods if not pod.is_mirror])
        self._around.release_soon()

    def _delete(self, pod: AgentPod) -> None:
        if not self._around.sources_ready():
            # Housekeeping ends it once they are (HND-4).
            _log.info("skipping delete because sources aren't ready yet", pod=pod.full_name)
            return
        if self._workers.work(pod.uid) is not None or self._around.runs(pod.uid):
            self._workers.update(Update(UpdateKind.KILL, pod))

    def _reconcile(self, pod: AgentPod) -> None:
        before = self._pods.pod(pod.uid)
        self._pods.put(pod)
        if pod.is_mirror:
            return
        work = self._workers.work(pod.uid)
        if pod.is_terminal and work is not None and not work.end_requested:
            # Somebody else says that it is over, such as the kubelet that runs it.
            self.sync(pod)
        if pod.spec.get("readinessGates") and ready_differs(pod, self._cache.get(pod.uid)):
            self.sync(pod)
        if pod.deletion_timestamp is not None:
            # What the source shows by now may be all that its deletion waited for (STAT-4).
            self._cache.recheck(pod.uid)
        if pod.phase == "Failed" and pod.status.get("reason") == "Evicted":
            self._around.remove_dead(pod.uid)
        self._resizes.reconciled(pod, before)

    def _mirror_changed(self, mirror: AgentPod, *, gone: bool = False) -> None:
        static = self._pods.static_of(mirror)
        if static is None:
            if not gone:
                _log.info("a mirror pod has no static pod yet", pod=mirror.full_name)
            return
        if self._workers.work(static.uid) is not None:
            self._workers.update(Update(UpdateKind.UPDATE, static))

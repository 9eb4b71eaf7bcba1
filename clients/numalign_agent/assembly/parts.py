"""Putting the parts of an agent together, in the order in which they need each other.

Separate from `agent`, which lets them run.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from numalign.telemetry.metrics import Metrics
from numalign.v1 import admission_pb2 as ad
from numalign_agent.admitting.admitter import Admitter, Skipping
from numalign_agent.admitting.calls import AdmissionCalls, RunningContainer
from numalign_agent.admitting.effects import Effects
from numalign_agent.admitting.following import AssignmentFollower
from numalign_agent.admitting.preempting import Preemption
from numalign_agent.admitting.reconciling import NodePicture, Reconciler
from numalign_agent.claims.port import ClaimReader
from numalign_agent.claims.preparing import ClaimPreparing
from numalign_agent.config.settings import AgentSettings
from numalign_agent.containers.life import ContainerLife
from numalign_agent.containers.sweeping import DeadContainers
from numalign_agent.housekeeping.housekeeping import Housekeeping, HousekeepingParts
from numalign_agent.journal.journal import Journal
from numalign_agent.loop.sources_ready import SourcesReady
from numalign_agent.loop.sync_loop import LoopChannels, LoopParts, SyncLoop
from numalign_agent.metrics import STRAYED_CONTAINERS
from numalign_agent.placements.devices import HeldDevices
from numalign_agent.placements.keeper import PlacementKeeper
from numalign_agent.pleg.generator import LifecycleEvents
from numalign_agent.pod import AgentPod
from numalign_agent.pods.active import is_active
from numalign_agent.pods.handlers import PodHandlers, Surroundings
from numalign_agent.pods.manager import PodManager
from numalign_agent.probes.prober import Prober
from numalign_agent.probes.results import ProbeChange
from numalign_agent.resizes.book import ResizeBook
from numalign_agent.resizes.pending import PendingResizes, ResizeParts
from numalign_agent.runners.port import ContainerPhase, PodRunner
from numalign_agent.shutdown.ending import PodEnding
from numalign_agent.status.cache import StatusCache
from numalign_agent.status.compute import is_overdue
from numalign_agent.status.port import EventType, MirrorPods
from numalign_agent.workers.operations import ContainerOperations, OperationParts
from numalign_agent.workers.work_queue import WorkQueue
from numalign_agent.workers.workers import Workers


@dataclass(frozen=True, slots=True)
class Outside:
    """What an agent is built over: everything that reaches out of it."""

    settings: AgentSettings
    runner: PodRunner
    calls: AdmissionCalls
    journal: Journal
    pods: PodManager
    cache: StatusCache
    channels: LoopChannels
    sources: SourcesReady
    mirrors: MirrorPods | None
    metrics: Metrics
    claims: ClaimReader


class Parts:
    """The parts of one agent. Making them starts nothing."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        on, metrics, clock = outside, outside.metrics, time.time
        self.pleg = LifecycleEvents(on.runner, on.channels.pleg.offer, metrics)
        self.probes = Prober(self._probe_changed, on.cache.event)
        self.placements = PlacementKeeper(on.runner, self._strayed)
        self.devices = HeldDevices()
        self.life = ContainerLife(on.runner, on.calls, self.placements, on.cache, metrics)
        self.resize_book = ResizeBook(on.settings.gates, clock)
        self.queue = WorkQueue()
        self.operations = ContainerOperations(
            OperationParts(
                runner=on.runner,
                life=self.life,
                calls=on.calls,
                cache=on.cache,
                pods=on.pods,
                probes=self.probes,
                mirrors=on.mirrors,
                resizes=self.resize_book,
                devices=self.devices.statuses,
                released=self._released,
                clock=clock,
                claims=ClaimPreparing(on.calls, on.claims, on.cache),
            )
        )
        self.workers = Workers(
            self.operations,
            self.queue,
            clock=clock,
            sync_every=on.settings.sync_every,
            is_idle=self.pleg.is_idle,
            ended=self._pod_ended,
            metrics=metrics,
        )
        self.dead = DeadContainers(on.runner, self.life, self._content_goes)
        preemption = Preemption(on.pods, self.workers, on.cache, on.calls, metrics)
        self.effects = Effects(self.workers, on.cache, on.journal, clock, self)
        ranks = {uid: r.rank for uid, r in on.journal.rows().items() if r.rank is not None}
        self.admitter = Admitter(
            on.calls,
            on.pods,
            self.effects,
            preemption,
            Skipping(self._is_skipped, self.effects.begin),
            ranks=ranks,
            sources_ready=on.sources,
            metrics=metrics,
        )
        self.resizes = PendingResizes(
            ResizeParts(
                book=self.resize_book,
                calls=on.calls,
                preemption=preemption,
                pods=on.pods,
                cache=on.cache,
                turn=self.admitter.turn(),
                look=self.workers.look,
                granted=self._granted,
                sources_ready=on.sources,
                metrics=metrics,
            )
        )
        self.reconciler = Reconciler(
            on.calls, self.admitter, self._picture, on.sources, on.settings.reconcile_every
        )
        self.handlers = PodHandlers(
            on.pods,
            self.workers,
            self.admitter,
            on.cache,
            on.journal,
            self.resizes,
            Surroundings(
                sources_ready=on.sources,
                runs=self.pleg.runs,
                remove_dead=self.dead.remove,
                release_soon=self.reconciler.wake,
            ),
        )
        self.housekeeping = Housekeeping(
            HousekeepingParts(
                pods=on.pods,
                workers=self.workers,
                admitter=self.admitter,
                effects=self.effects,
                cache=on.cache,
                journal=on.journal,
                pleg=self.pleg,
                mirrors=on.mirrors,
                forget=self._forget,
                remove_dead=self.dead.remove,
                metrics=metrics,
            )
        )
        self.ending = PodEnding(
            self.workers,
            self._not_ended,
            () if on.settings.shutdown is None else on.settings.shutdown.groups,
        )
        self.follower = AssignmentFollower(
            on.calls, self.placements.heard, self.devices, on.channels.devices.offer
        )
        self.loop = SyncLoop(
            LoopParts(
                channels=on.channels,
                handlers=self.handlers,
                clean=self.housekeeping.clean,
                sources=on.sources,
                runner=on.runner,
                pods=lambda: on.pods.pods,
                due=self._due,
                pleg_problem=self.pleg.problem,
                remove_dead=self.dead.remove,
            ),
            on.settings.sync_every,
        )

    def admitted(self, pod: AgentPod, asked: AgentPod, answer: ad.AdmitResponse) -> None:
        """A pod was admitted (effects.Granted): running containers go where they belong."""
        self._granted(pod.uid, answer)
        self.resizes.admitted(pod, asked, answer)

    def pod(self, pod_uid: str) -> AgentPod | None:
        """See PodQuestions."""
        return self._outside.pods.pod(pod_uid)

    def mirror_of(self, pod: AgentPod) -> AgentPod | None:
        """See PodQuestions."""
        return self._outside.pods.mirror_of(pod)

    def may_run(self, pod_uid: str) -> bool:
        """See PodQuestions."""
        return self.workers.may_run(pod_uid)

    def is_finished(self, pod_uid: str) -> bool:
        """See PodQuestions."""
        return self.workers.is_finished(pod_uid)

    def _content_goes(self, pod_uid: str) -> bool:
        """Whether no dead container of a pod is kept.

        One that is wanted and has no worker yet may still need to know how they ended.
        """
        if self.workers.work(pod_uid) is None and pod_uid in self._outside.pods.pods:
            return False
        return self.workers.content_goes(pod_uid)

    def _granted(self, pod_uid: str, answer: ad.AdmitResponse) -> None:
        """What a pod holds from now on."""
        self.placements.granted(pod_uid, answer)
        self.devices.granted(pod_uid, answer)

    def _forget(self, pod_uids: Iterable[str]) -> None:
        """Nothing is left of these pods."""
        uids = tuple(pod_uids)
        self.operations.forget(uids)
        self.devices.forget(uids)

    def _strayed(self, pod_uid: str, container: str, reason: str, found: str) -> None:
        self._outside.metrics.counter(STRAYED_CONTAINERS).inc()
        pod = self._outside.pods.pod(pod_uid)
        if pod is not None:
            message = f"Container {container}: {found}"
            self._outside.cache.event(pod, EventType.WARNING, reason, message)

    def _not_ended(self) -> Iterable[AgentPod]:
        works = self.workers.works().values()
        return [work.pod for work in works if not work.known_terminated]

    def _released(self, pod_uid: str) -> None:
        self.admitter.released(pod_uid)

    def _is_skipped(self, pod: AgentPod) -> bool:
        return self.handlers.is_skipped(pod)

    def _probe_changed(self, change: ProbeChange) -> None:
        # Without room the result is seen at the next sync.
        self._outside.channels.of_probe(change.key.kind).offer(change)

    def _pod_ended(self, pod_uid: str) -> None:
        self._outside.cache.recheck(pod_uid)
        self.resizes.ended()

    def _due(self) -> Iterable[str]:
        """Pods whose time has come, and those that are active for too long (LOOP-5)."""
        yield from self.queue.take_due(time.monotonic())
        now = time.time()
        for uid, pod in self._outside.pods.pods.items():
            status = self._outside.cache.get(uid)
            if is_overdue(pod, status, now) and not self._outside.cache.is_terminal(uid):
                yield uid

    def _picture(self) -> NodePicture:
        """Who holds resources, or may yet: nothing of these is released."""
        on = self._outside
        works = self.workers.works()
        active = {
            uid
            for uid, pod in on.pods.pods.items()
            if is_active(pod, works.get(uid), ended=on.cache.is_terminal(uid))
        }
        active |= self.admitter.undecided & on.pods.pods.keys()
        active |= {uid for uid, work in works.items() if not work.known_terminated}
        running = [
            RunningContainer(container.id, pod.uid, container.name)
            for pod in self.pleg.pods.values()
            for container in pod.containers
            if container.phase is ContainerPhase.RUNNING
        ]
        return NodePicture(frozenset(active | {r.pod_uid for r in running}), tuple(running))

"""The clean-up pass, step by step (HSK-1 to HSK-9). What it has to do is decided in `plan`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign_agent.admitting.admitter import Admitter
from numalign_agent.admitting.effects import Effects
from numalign_agent.admitting.order import by_creation
from numalign_agent.housekeeping.plan import Picture, clean_up, counts
from numalign_agent.journal.journal import Journal
from numalign_agent.metrics import (
    ACTIVE_PODS,
    DESIRED_PODS,
    MIRROR_PODS,
    ORPHANED_PODS,
    RESTARTED_PODS,
    WORKING_PODS,
)
from numalign_agent.pleg.generator import LifecycleEvents
from numalign_agent.pod import AgentPod
from numalign_agent.pods.manager import PodManager
from numalign_agent.runners.port import RuntimePod
from numalign_agent.status.cache import StatusCache
from numalign_agent.status.port import MirrorPods
from numalign_agent.workers.work import Kill, Update, UpdateKind
from numalign_agent.workers.workers import Workers

ORPHAN_GRACE = 1
SLOW_SECONDS = 1.0

_log = get_logger("housekeeping")


@dataclass(frozen=True, slots=True)
class HousekeepingParts:
    """What a pass works with.

    `forget` hears of pods that nothing is left of; `remove_dead` has dead containers of a pod
    removed.
    """

    pods: PodManager
    workers: Workers
    admitter: Admitter
    effects: Effects
    cache: StatusCache
    journal: Journal
    pleg: LifecycleEvents
    mirrors: MirrorPods | None
    forget: Callable[[Iterable[str]], None]
    remove_dead: Callable[[str], None]
    metrics: Metrics


class Housekeeping:
    """Cleans up when it is told to; nothing else happens to pods meanwhile."""

    def __init__(self, parts: HousekeepingParts) -> None:
        self._on = parts

    async def clean(self) -> None:
        """One pass."""
        began = asyncio.get_running_loop().time()
        await self._clean()
        took = asyncio.get_running_loop().time() - began
        if took > SLOW_SECONDS:
            _log.warning("Housekeeping took longer than expected", seconds=round(took, 3))

    async def _clean(self) -> None:
        on = self._on
        desired = set(on.pods.pods)
        first = not on.workers.tidied
        forgotten = on.workers.prune(desired, set(on.pleg.pods))
        if first:
            # What is said of pods without worker is another answer from now on (WRK-12).
            for uid in desired:
                on.cache.recheck(uid)
        await on.pleg.relist()
        self._forget_all_but(desired | set(on.pods.mirrors))
        on.forget(uid for uid in forgotten if uid not in desired)
        await self._delete_mirrors()
        self._begin_and_end(self._picture())
        self._remove_what_is_left()
        self._count(self._picture())

    def _picture(self) -> Picture:
        on = self._on
        return Picture(
            desired=on.pods.pods,
            works=on.workers.works(),
            runtime=on.pleg.pods,
            ended={uid for uid in on.pods.pods if on.cache.is_terminal(uid)},
            undecided=on.admitter.undecided,
            admitted=on.admitter.admitted,
        )

    def _forget_all_but(self, kept: set[str]) -> None:
        """Drop statuses and rows of pods that are neither wanted nor still ending."""
        kept |= set(self._on.workers.works()) | self._on.admitter.undecided
        self._on.cache.forget_all_but(kept)
        for uid in [uid for uid in self._on.journal.rows() if uid not in kept]:
            self._on.journal.forget(uid)

    async def _delete_mirrors(self) -> None:
        """Mirror pods whose static pod is gone, unless it is still ending (MIR-5)."""
        if self._on.mirrors is None:
            return
        ending = {
            work.pod.full_name
            for work in self._on.workers.works().values()
            if not work.known_terminated
        }
        for mirror in self._on.pods.orphaned_mirrors():
            if mirror.full_name not in ending:
                await self._on.mirrors.delete(mirror)

    def _begin_and_end(self, picture: Picture) -> None:
        on, todo = self._on, clean_up(picture)
        for uid in todo.start:
            pod = picture.desired[uid]
            on.metrics.counter(RESTARTED_PODS).labels("true" if pod.is_static else "").inc()
            on.effects.begin(pod)
        on.admitter.add(p.uid for p in by_creation(picture.desired[uid] for uid in todo.ask))
        for uid in todo.end:
            on.workers.update(Update(UpdateKind.KILL, picture.desired[uid]))
        for uid in todo.orphans:
            _log.warning("a pod runs that nobody knows", pod_uid=uid)
            on.metrics.counter(ORPHANED_PODS).inc()
            kill = Kill(grace=ORPHAN_GRACE)
            pod = picture.desired.get(uid) or pod_of(picture.runtime[uid])
            on.workers.update(Update(UpdateKind.KILL, pod, kill=kill, orphan=True))

    def _remove_what_is_left(self) -> None:
        """Dead containers of pods of which nothing has to be kept."""
        for uid, pod in self._on.pleg.pods.items():
            if self._on.workers.content_goes(uid) and pod.containers:
                if uid in self._on.admitter.undecided or uid in self._on.pods.pods:
                    continue
                self._on.remove_dead(uid)

    def _count(self, picture: Picture) -> None:
        metrics, found = self._on.metrics, counts(picture)
        for label, number in found.desired.items():
            metrics.gauge(DESIRED_PODS).labels(label).set(number)
        for label, number in found.active.items():
            metrics.gauge(ACTIVE_PODS).labels(label).set(number)
        for labels, number in found.working.items():
            metrics.gauge(WORKING_PODS).labels(*labels).set(number)
        metrics.gauge(MIRROR_PODS).set(len(self._on.pods.mirrors))


def pod_of(found: RuntimePod) -> AgentPod:
    """As much of a pod as the runtime knows, for one that no source knows."""
    metadata = {"name": found.name, "namespace": found.namespace, "uid": found.uid}
    return AgentPod({"metadata": metadata, "spec": {}})

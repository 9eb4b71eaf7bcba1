"""Making true what is not yet: pods that wait are decided on, containers that strayed put back.

Runs beside the events of the runtime: whenever something may have to be done, and every so
often in any case, since what a container may use can be changed behind everybody's back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign_agent.nri.admission import Admission, NoAnswer, Refused
from numalign_agent.nri.books import Books
from numalign_agent.nri.cgroup_readback import CgroupReadback
from numalign_agent.nri.chores import Chores
from numalign_agent.nri.following import Following
from numalign_agent.nri.heard import LATELY
from numalign_agent.nri.judge import Judge
from numalign_agent.nri.known import KnownContainer, KnownPod
from numalign_agent.nri.metrics import CONTAINERS, REFUSED_UPDATES, UPDATES
from numalign_agent.nri.plan.drift import Actual, Drift, drift_of, drift_text
from numalign_agent.nri.plan.patience import Patience
from numalign_agent.nri.plan.pinning import Pinning
from numalign_agent.nri.quotas import Quotas
from numalign_agent.nri.registration import UpdateFailed
from numalign_agent.nri.reporter import Reporter
from numalign_agent.nri.settings import NriSettings
from numalign_agent.spans import pod_span

CALM = Patience(spec=5.0, admission=10.0)
"""Nobody waits here: Admission may take its time."""

_SETTLE_AFTER = 0.2
"""Seconds in which news are collected."""

_READ_AGAIN = (0.05, 0.2, 0.5, 1.0)
"""Seconds until it is looked again whether what was told has come into force."""

_RECONCILE_SECONDS = 10.0

_log = get_logger("nri")

Tell = Callable[[bool], Awaitable[None]]
"""Tells the runtime all that is pending in the books; raises UpdateFailed.

With True the runtime tells its whole picture first.
"""


@dataclass(frozen=True, slots=True)
class _Found:
    """What one container may use, and what it should."""

    pod: KnownPod
    container: KnownContainer
    wanted: Pinning
    actual: Actual

    @property
    def drift(self) -> Drift:
        return drift_of(self.wanted, self.actual)

    @property
    def text(self) -> str:
        return drift_text(self.wanted, self.actual)


class Settling:
    """Settles while connected. `wake` asks for it; `look_again` for the runtime's whole picture."""

    def __init__(
        self,
        books: Books,
        admission: Admission,
        following: Following,
        judge: Judge,
        chores: Chores,
        reporter: Reporter,
        readback: CgroupReadback,
        quotas: Quotas,
        metrics: Metrics,
        settings: NriSettings,
    ) -> None:
        self._books = books
        self._admission = admission
        self._following = following
        self._judge = judge
        self._chores = chores
        self._reporter = reporter
        self._readback = readback
        self._quotas = quotas
        self._settings = settings
        self._containers = metrics.gauge(CONTAINERS)
        self._updates = metrics.counter(UPDATES)
        self._refused = metrics.counter(REFUSED_UPDATES)
        self._wakened = asyncio.Event()
        self._look_again = False
        self._cannot_read = False

    def wake(self) -> None:
        """There may be something to do."""
        self._wakened.set()

    def look_again(self) -> None:
        """Have the runtime tell everything once more: something may have been missed."""
        self._look_again = True
        self.wake()

    async def run(self, tell: Tell) -> None:
        """Settle again and again, as long as the runtime is connected; until cancelled."""
        reconcile_at = 0.0
        time = asyncio.get_running_loop().time
        while True:
            try:
                async with asyncio.timeout(self._settings.check_every):
                    await self._wakened.wait()
                    await asyncio.sleep(_SETTLE_AFTER)
            except TimeoutError:
                pass
            self._wakened.clear()
            if time() >= reconcile_at:
                # What pods hold that are gone may be just what another one needs.
                reconcile_at = time() + self._settings.check_every
                await self._reconcile()
            await self._decide()
            self._release_what_rests(time())
            self._look_again |= bool(self._books.idle(time(), self._settings.release_after))
            await self._place(tell)
            if self._books.doubtful:
                self._books.doubtful = False
                asyncio.get_running_loop().call_later(LATELY, self.look_again)
            if self._settings.lift_quota:
                await self._quotas.lift(self._exclusive())
            for standing, count in self._books.counts().items():
                self._containers.labels(standing).set(count)

    async def _decide(self) -> None:
        """Have pods decided on that run already, the oldest first."""
        try:
            for pod in self._books.waiting():
                # How old a pod is stands there too.
                await self._judge.look_up(pod, CALM.spec)
            for pod in self._books.waiting():
                with pod_span("nri settle", pod.uid, pod.namespace, pod.name):
                    await self._judge.judge(pod, CALM, running=True)
            for pod, container in self._books.unjudged():
                with pod_span("nri settle", pod.uid, pod.namespace, pod.name, container.name):
                    await self._judge.judge_container(pod, container, CALM)
        except NoAnswer as error:
            _log.info("pods wait for Admission", error=str(error))

    def _release_what_rests(self, now: float) -> None:
        for pod in self._books.resting():
            if pod.rests_since is not None and (
                now - pod.rests_since >= self._settings.release_after
            ):
                for uid in self._books.uids_held(pod):
                    self._chores.release(uid)

    async def _place(self, tell: Tell) -> None:
        """Look where containers really are, and have those told that are not where they should."""
        for found in await self._look():
            self._note(found)
        pending = self._books.pending()
        if not pending and not self._look_again:
            return
        whole, self._look_again = self._look_again, False
        try:
            await tell(whole)
        except UpdateFailed as error:
            _log.warning("the runtime could not be told", error=str(error))
            self._look_again = True
            return
        self._updates.inc(len(pending))
        await self._verify({update.container_id for update in pending})

    def _note(self, found: _Found) -> None:
        """Take what is in force for what was given, so that it is told again."""
        container, actual = found.container, found.actual
        given = container.given
        # What it should be was another thing until a moment ago, unless it never was told.
        expected = given if given.cpus else found.wanted
        if drift_of(expected, actual) is Drift.UNPINNED and not container.strayed:
            container.strayed = True
            self._reporter.unpinned(found.pod.as_agent_pod, container.name, found.text)
        if found.drift is Drift.NONE:
            container.strayed = False
            container.stuck_at = None
        if (found.wanted, actual) != container.stuck_at or found.drift is Drift.UNPINNED:
            mems = actual.mems if given.mems else given.mems
            container.given = Pinning(actual.cpus, mems, given.exclusive)

    async def _verify(self, told: set[str]) -> None:
        """Look whether what was told has come into force; the runtime takes a moment."""
        wrong: list[_Found] = []
        for seconds in _READ_AGAIN:
            await asyncio.sleep(seconds)
            wrong = [
                found
                for found in await self._look()
                if found.container.id in told and found.drift is not Drift.NONE
            ]
            if not wrong:
                return
        for found in wrong:
            stuck_at = (found.wanted, found.actual)
            if found.container.stuck_at != stuck_at:
                found.container.stuck_at = stuck_at
                self._refused.inc()
                self._reporter.refused_update(
                    found.pod.as_agent_pod, found.container.name, found.text
                )

    async def _look(self) -> list[_Found]:
        """What every container may use whose place is known and whose cgroup can be read."""
        live = [
            (pod, container, wanted)
            for pod, container in self._books.live()
            if (wanted := self._books.wanted(pod, container.name)) is not None
        ]
        paths = [container.seen.cgroups_path for _, container, _ in live]
        actuals = await asyncio.to_thread(lambda: list(map(self._readback.read, paths)))
        self._say_if_blind(actuals)
        return [
            _Found(pod, container, wanted, actual)
            for (pod, container, wanted), actual in zip(live, actuals, strict=True)
            if actual is not None
        ]

    def _exclusive(self) -> list[str]:
        """The cgroups of containers with exclusive CPUs."""
        return [
            container.seen.cgroups_path
            for pod, container in self._books.live()
            if (wanted := self._books.wanted(pod, container.name)) is not None and wanted.exclusive
        ]

    def _say_if_blind(self, actuals: Iterable[Actual | None]) -> None:
        blind = not self._readback.can_read() and any(actual is None for actual in actuals)
        if blind and not self._cannot_read:
            _log.warning("cgroups cannot be read here: what containers may use is not checked")
        self._cannot_read = blind

    async def _reconcile(self) -> None:
        """Have released what is held for pods that are not here any more."""
        revision = self._following.revision
        running = [
            (container.id, found[0], container.name)
            for pod, container in self._books.live()
            if (found := self._books.record_of(pod, container.name)) is not None
        ]
        try:
            released = await self._admission.reconcile(
                self._books.active_uids(), running, revision, _RECONCILE_SECONDS
            )
        except (NoAnswer, Refused) as error:
            _log.info("Admission could not be told which pods are here", error=str(error))
            return
        for uid in released:
            _log.info("released what a pod held that is gone", pod_uid=uid)

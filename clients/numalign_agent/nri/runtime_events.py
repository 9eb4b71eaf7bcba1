"""What each event of the runtime does, and what it is answered.

The runtime tells one event at a time and waits; so nothing here waits longer than the patience
for it allows, and what may come later is left to the chores and the settling.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from grpc import StatusCode

from numalign.kube.nri.v1alpha1 import api_pb2 as nri
from numalign.telemetry.logs import get_logger
from numalign_agent.nri.admission import Admission, NoAnswer
from numalign_agent.nri.books import Books
from numalign_agent.nri.chores import Chores
from numalign_agent.nri.judge import Judge
from numalign_agent.nri.known import KnownContainer, KnownPod
from numalign_agent.nri.messages import (
    StartedAt,
    container_of,
    containers_of,
    sandbox_of,
    set_place,
    update_message,
)
from numalign_agent.nri.ownership import Ownership
from numalign_agent.nri.placing import Placing
from numalign_agent.nri.plan.drift import Actual, Drift, drift_of, drift_text
from numalign_agent.nri.plan.patience import Patience, patience
from numalign_agent.nri.plan.standing import Standing
from numalign_agent.nri.plan.updates import NO_QUOTA, Update
from numalign_agent.nri.reporter import Reporter
from numalign_agent.nri.settings import NriSettings
from numalign_agent.nri.wire.errors import CallFailed

_log = get_logger("nri")


@dataclass(frozen=True, slots=True)
class Runtime:
    """The runtime as it makes itself known.

    `request_seconds` is how long it waits for an answer; 0 if it does not say.
    """

    name: str = ""
    version: str = ""
    nri_version: str = ""
    request_seconds: float = 0.0


MayUse = Callable[[str], Actual | None]
"""What the kernel lets a cgroup use, by its path; None where that cannot be read."""


class RuntimeEvents:
    """Handles events; `wake` is called when there is something for the settling to do."""

    def __init__(
        self,
        books: Books,
        admission: Admission,
        judge: Judge,
        placing: Placing,
        chores: Chores,
        reporter: Reporter,
        ownership: Ownership,
        settings: NriSettings,
        started_at: StartedAt,
        may_use: MayUse,
        wake: Callable[[], None],
    ) -> None:
        self._books = books
        self._admission = admission
        self._judge = judge
        self._placing = placing
        self._chores = chores
        self._reporter = reporter
        self._ownership = ownership
        self._settings = settings
        self._started_at = started_at
        self._may_use = may_use
        self._wake = wake
        self.runtime = Runtime()

    async def run_pod_sandbox(self, message: nri.PodSandbox) -> None:
        """A pod is about to run. Raises CallFailed for one that must not."""
        self._books.heard.begun(message.id, self._now())
        pod = self._books.see_sandbox(sandbox_of(message))
        self._books.judge_anew(pod)
        try:
            await self._judge.judge(pod, self._patience(), running=False)
        except NoAnswer as error:
            self._undecided(pod, error)
        self._refuse_if_refused(pod)

    async def create_container(
        self, message: nri.PodSandbox, container: nri.Container
    ) -> nri.CreateContainerResponse:
        """A container is about to be created. Raises CallFailed for one that must not be.

        The answer says where it is to run, and moves others out of its way before.
        """
        sandbox = sandbox_of(message)
        self._books.heard.begun(container.id, self._now())
        known = self._books.see_container(sandbox, container_of(container, message), new=True)
        pod = self._books.see_sandbox(sandbox)
        response = nri.CreateContainerResponse()
        if known.foreign or self._books.standing(pod) is Standing.FOREIGN:
            _log.warning(
                "container is placed by somebody else and left alone",
                pod=pod.called,
                pod_uid=pod.uid,
                container=known.name,
                cpus=container.linux.resources.cpu.cpus,
            )
        else:
            try:
                await self._place(pod, known, response.adjust)
            except CallFailed:
                self._books.container_gone(known.id)
                raise
        response.update.extend(self._tell(self._books.pending(besides=known.id)))
        return response

    async def update_container(
        self, message: nri.PodSandbox, container: nri.Container
    ) -> nri.UpdateContainerResponse:
        """Somebody changes a container's resources: where it runs stays as it is to be."""
        sandbox = sandbox_of(message)
        known = self._books.see_container(sandbox, container_of(container, message))
        pod = self._books.see_sandbox(sandbox)
        response = nri.UpdateContainerResponse()
        response.update.extend(self._tell(self._books.pending(besides=known.id)))
        wanted = None if known.foreign else self._books.wanted(pod, known.name)
        if wanted is not None:
            quota = NO_QUOTA if wanted.exclusive and self._settings.lift_quota else None
            response.update.extend(self._tell([Update(known.id, wanted, quota)]))
        return response

    async def stop_container(self, container: nri.Container) -> nri.StopContainerResponse:
        """A container has stopped."""
        self._books.heard.ended(container.id, self._now())
        self._books.container_gone(container.id)
        self._chores.ended(container.id)
        return nri.StopContainerResponse(update=self._tell(self._books.pending()))

    async def remove_container(self, container: nri.Container) -> None:
        """A container is removed."""
        self._books.container_gone(container.id)

    async def stop_pod_sandbox(self, message: nri.PodSandbox) -> None:
        """A pod's sandbox has stopped. The pod may get another; what it holds it keeps a while."""
        self._books.sandbox_stopped(message.id, self._now())

    async def remove_pod_sandbox(self, message: nri.PodSandbox) -> None:
        """A pod's sandbox is gone, and with the last one the pod."""
        self._books.heard.ended(message.id, self._now())
        pod = self._books.sandbox_removed(message.id)
        if pod is not None:
            self._release(pod)

    def connected(self) -> None:
        """A connection begins over which events will come: nothing is taken for decided."""
        self._books.heard.forget_all()
        for pod in self._books.pods():
            if not any(container.foreign for container in pod.containers.values()):
                self._books.judge_anew(pod)

    def synchronize(
        self, sandboxes: Iterable[nri.PodSandbox], containers: Iterable[nri.Container]
    ) -> list[nri.ContainerUpdate]:
        """Everything that there is: what has to change in it as far as that is known by now."""
        sandboxes = list(sandboxes)
        gone = self._books.synchronize(
            map(sandbox_of, sandboxes),
            containers_of(containers, sandboxes, self._started_at),
            self._now(),
        )
        for pod in gone:
            self._release(pod)
        pending = self._books.pending()
        self._report_unpinned({update.container_id: update for update in pending})
        self._wake()
        return self._tell(pending)

    def pending(self) -> list[nri.ContainerUpdate]:
        """What the runtime has to be told by now; counted as told."""
        return self._tell(self._books.pending())

    def configured(self, runtime: Runtime) -> None:
        """The runtime has said who it is."""
        self.runtime = runtime
        self._placing.runtime_is(runtime.name, runtime.version)

    async def _place(
        self, pod: KnownPod, container: KnownContainer, adjust: nri.ContainerAdjustment
    ) -> None:
        patience_ = self._patience()
        deadline = self._now() + patience_.admission
        try:
            await self._judge.judge(pod, patience_, running=False)
            if self._books.standing(pod) is Standing.ESTIMATED:
                left = Patience(0, max(deadline - self._now(), 0))
                await self._judge.judge_container(pod, container, left)
        except NoAnswer as error:
            self._undecided(pod, error)
            deadline = self._now()
        self._refuse_if_refused(pod)
        pinning = await self._placing.place(pod, container, adjust, deadline)
        if pinning is None:
            self._wake()
            return
        set_place(
            adjust.linux.resources.cpu,
            pinning,
            NO_QUOTA if pinning.exclusive and self._settings.lift_quota else None,
        )
        self._ownership.add(container.id)
        self._books.given(container.id, pinning)
        _log.info(
            "container placed",
            pod=pod.called,
            pod_uid=pod.uid,
            container=container.name,
            cpus=str(pinning.cpus),
            mems=str(pinning.mems),
            exclusive=pinning.exclusive,
        )
        found = self._books.record_of(pod, container.name)
        if found is None:
            self._wake()
        else:
            self._chores.started(found[0], container.name, container.id)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _patience(self) -> Patience:
        seconds = self._settings.request_timeout or self.runtime.request_seconds
        return patience(seconds, admission_hung=self._admission.hangs)

    def _undecided(self, pod: KnownPod, error: NoAnswer) -> None:
        self._reporter.undecided(pod.as_agent_pod, str(error), too_late=not error.in_time)
        self._wake()

    def _refuse_if_refused(self, pod: KnownPod) -> None:
        if self._books.standing(pod) is Standing.REFUSED:
            raise CallFailed(StatusCode.FAILED_PRECONDITION, str(pod.refusal))

    def _report_unpinned(self, pending: Mapping[str, Update]) -> None:
        """Say which containers have run where they should not, as the plugin was not there.

        Without any CPUs set a container may be where it should all the same, as where all CPUs
        are shared: it is set then, and nobody is told.
        """
        for pod, container in self._books.live():
            update = pending.get(container.id)
            if update is None or not update.pinning.cpus or container.given.cpus:
                continue
            actual = self._may_use(container.seen.cgroups_path)
            if actual is None:
                text = f"it could use all CPUs, and is put on {update.pinning.cpus}"
            elif drift_of(update.pinning, actual) is Drift.UNPINNED:
                text = drift_text(update.pinning, actual)
            else:
                continue
            self._reporter.unpinned(pod.as_agent_pod, container.name, text)

    def _release(self, pod: KnownPod) -> None:
        for uid in self._books.uids_held(pod):
            self._chores.release(uid)

    def _tell(self, updates: Iterable[Update]) -> list[nri.ContainerUpdate]:
        updates = list(updates)
        self._ownership.add(*(u.container_id for u in updates))
        for update in updates:
            self._books.given(update.container_id, update.pinning)
        return list(map(update_message, updates))

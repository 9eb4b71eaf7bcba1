"""The three operations on a pod, over its containers (WRK-15, STAT-5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from numalign.telemetry.logs import get_logger
from numalign_agent.admitting.calls import AdmissionCalls
from numalign_agent.containers.crash_pause import (
    CrashPause,
    lengthened,
    pause_message,
    remaining,
)
from numalign_agent.containers.life import ContainerLife, NotStarted
from numalign_agent.containers.plan import ContainerPlan, Start, plan
from numalign_agent.containers.spec import ContainerKind, containers_of
from numalign_agent.pod import TERMINAL_PHASES, AgentPod
from numalign_agent.pods.manager import PodManager
from numalign_agent.pods.qos import qos_of
from numalign_agent.probes.results import Judged
from numalign_agent.runners.port import (
    ContainerPhase,
    PodRunner,
    RunnerFailed,
    RuntimeContainer,
)
from numalign_agent.status.cache import StatusCache
from numalign_agent.status.compute import (
    DEADLINE_MESSAGE,
    DEADLINE_REASON,
    PodFacts,
    PodStatus,
    computed,
)
from numalign_agent.status.container_statuses import ContainerFacts, Waiting
from numalign_agent.status.port import EventType, MirrorPods
from numalign_agent.workers.port import OperationFailed
from numalign_agent.workers.work import PodWork
from numalign_client.errors import AdmissionError

_log = get_logger("worker")


class Probing(Protocol):
    """Asks the containers of pods."""

    def follow(self, pod: AgentPod, containers: Sequence[RuntimeContainer]) -> None:
        """These containers of a pod run now: ask them, and nobody else of the pod."""

    def judged(self, pod: AgentPod, containers: Sequence[RuntimeContainer]) -> Judged:
        """What is known of them."""

    def stop(self, pod_uid: str) -> None:
        """Ask nobody of this pod any more."""


class ResizedPods(Protocol):
    """What the status of a pod says of its resizes."""

    def conditions(self, pod_uid: str) -> Sequence[Mapping[str, Any]]:
        """The conditions of a pod whose resize is pending or in progress."""

    def allocated_form(self, pod: AgentPod) -> AgentPod:
        """The pod with the amounts that it is allocated."""

    def allocated(self, pod_uid: str) -> Mapping[str, Mapping[str, Any]]:
        """What its containers are allocated, by name."""

    def actuated(self, pod_uid: str) -> None:
        """Its containers run with that."""


class PodClaims(Protocol):
    """Has the resource claims of pods prepared."""

    async def prepare(self, pod: AgentPod) -> None:
        """Before the first container of a pod starts. Raises OperationFailed."""

    def forget(self, pod_uids: Iterable[str]) -> None:
        """These pods are gone."""


@dataclass(frozen=True, slots=True)
class OperationParts:
    """What the operations work with.

    `released` hears of pods that hold nothing any more; `devices` says how those of a pod are
    doing, by container.
    """

    runner: PodRunner
    life: ContainerLife
    calls: AdmissionCalls
    cache: StatusCache
    pods: PodManager
    probes: Probing
    mirrors: MirrorPods | None
    resizes: ResizedPods
    devices: Callable[[str], Mapping[str, list[dict[str, Any]]]]
    released: Callable[[str], None]
    clock: Callable[[], float]
    claims: PodClaims | None = None


class ContainerOperations:
    """See PodOperations."""

    def __init__(self, parts: OperationParts) -> None:
        self._on = parts
        self._pauses: dict[tuple[str, str], CrashPause] = {}
        self._waiting: dict[str, dict[str, Waiting]] = {}

    async def sync(self, work: PodWork) -> bool:
        """Bring the containers nearer to what the pod wants; whether the pod is over.

        They are made as the pod is allocated, not as a resize that waits wants it (RES-4).
        """
        pod = self._on.resizes.allocated_form(work.pod)
        containers = await self._containers(pod.uid)
        if self._tell(work, containers)["phase"] in TERMINAL_PHASES:
            return True
        if self._on.mirrors is not None and pod.is_static:
            await self._on.mirrors.reconcile(work.pod, self._on.pods.mirror_of(pod))
        if not containers:
            self._tell_not_given(pod)
        judged = self._on.probes.judged(pod, containers)
        todo = plan(
            pod,
            containers,
            started=judged.started,
            failing=judged.failing,
            pause=lambda container: self._pause(pod, container),
        )
        self._note_pauses(pod, todo)
        await self._prepare_claims(pod, todo, containers)
        failures = await self._carry_out(pod, todo)
        containers = await self._containers(pod.uid)
        self._on.probes.follow(pod, containers)
        if not failures:
            self._on.resizes.actuated(pod.uid)
        over = self._tell(work, containers)["phase"] in TERMINAL_PHASES
        if failures and not over:
            raise OperationFailed("; ".join(failures))
        if todo.pauses and not over:
            # A container that waits is no failure of the pod; it is looked at when it is due.
            raise OperationFailed("containers wait", min(todo.pauses.values()))
        return over

    async def terminate(self, work: PodWork) -> None:
        """Stop app containers together, then sidecars, the last one first."""
        pod = work.pod
        self._on.probes.stop(pod.uid)
        containers = await self._containers(pod.uid)
        self._tell(work, containers)
        deadline = self._on.clock() + (work.grace or 1)
        for group in _in_order_of_stopping(pod, containers):
            left = max(1.0, deadline - self._on.clock())
            stops = (self._on.life.stop(pod, container, left) for container in group)
            failed = [
                error
                for error in await asyncio.gather(*stops, return_exceptions=True)
                if error is not None
            ]
            for error in failed:
                raise error
        containers = await self._containers(pod.uid)
        running = [c.name for c in containers if c.phase is ContainerPhase.RUNNING]
        if running:
            raise OperationFailed(f"containers still run: {', '.join(running)}")
        self._tell(work, containers)

    async def finish(self, work: PodWork) -> None:
        """Give back what the pod holds, and tell how it ended."""
        pod = work.pod
        self._waiting.pop(pod.uid, None)
        self._tell(work, await self._containers(pod.uid), over=True)
        try:
            await self._on.calls.release(pod.uid)
        except AdmissionError as error:
            # The pod is over all the same: the next reconciliation releases it.
            _log.warning("not released yet", code=error.code.name, error=error.message)
        else:
            self._on.released(pod.uid)

    def forget(self, pod_uids: Iterable[str]) -> None:
        """Pods are gone: so is what was remembered of their containers."""
        gone = set(pod_uids)
        self._pauses = {key: p for key, p in self._pauses.items() if key[0] not in gone}
        for uid in gone:
            self._waiting.pop(uid, None)
            self._on.probes.stop(uid)
        self._on.life.forget(gone)
        if self._on.claims is not None:
            self._on.claims.forget(gone)

    async def _prepare_claims(
        self, pod: AgentPod, todo: ContainerPlan, containers: Sequence[RuntimeContainer]
    ) -> None:
        """Before anything of the pod runs (DRA-17)."""
        runs = any(container.phase is ContainerPhase.RUNNING for container in containers)
        if self._on.claims is not None and todo.starts and not runs:
            await self._on.claims.prepare(pod)

    async def _carry_out(self, pod: AgentPod, todo: ContainerPlan) -> list[str]:
        """Stop, then start; what went wrong with single containers."""
        for stop in todo.stops:
            grace = pod.spec.get("terminationGracePeriodSeconds")
            seconds = 30.0 if grace is None else max(1.0, float(grace))
            await self._on.life.stop(pod, stop.container, seconds, stop.why)
        failures = []
        waiting = self._waiting.setdefault(pod.uid, {})
        for start in todo.starts:
            try:
                await self._start(pod, start)
            except NotStarted as error:
                waiting[start.spec.name] = error.waiting
                failures.append(error.waiting.message)
                if start.spec.kind is not ContainerKind.APP:
                    break
            else:
                waiting.pop(start.spec.name, None)
        return failures

    async def _start(self, pod: AgentPod, start: Start) -> None:
        before = start.instead_of
        if before is not None and before.phase is ContainerPhase.CREATED:
            # Made, and never started: whoever made it ended in between.
            await self._on.life.remove(before.id)
        elif before is not None:
            key = (pod.uid, start.spec.name)
            now = self._on.clock()
            ended = before.finished_at or now
            self._pauses[key] = lengthened(self._pauses.get(key), ended, now)
        try:
            await self._on.life.start(pod, start)
        finally:
            of_name = [c for c in await self._containers(pod.uid) if c.name == start.spec.name]
            await self._on.life.remove_all(tuple(of_name), keep=2)

    def _tell_not_given(self, pod: AgentPod) -> None:
        missing = self._on.runner.not_given(pod)
        if missing and pod.uid not in self._waiting:
            text = f"not given by this runner: {', '.join(missing)}"
            self._on.cache.event(pod, EventType.WARNING, "NotSupported", text)

    def _pause(self, pod: AgentPod, container: RuntimeContainer) -> float:
        pause = self._pauses.get((pod.uid, container.name))
        return remaining(pause, container.finished_at, self._on.clock())

    def _note_pauses(self, pod: AgentPod, todo: ContainerPlan) -> None:
        waiting = self._waiting.setdefault(pod.uid, {})
        for name in todo.pauses:
            pause = self._pauses[pod.uid, name]
            text = pause_message(pause.seconds, name, pod.name, pod.namespace, pod.uid)
            if waiting.get(name) != (told := Waiting("CrashLoopBackOff", text)):
                waiting[name] = told
                message = (
                    f"Back-off restarting failed container {name} in pod "
                    f"{pod.name}_{pod.namespace}({pod.uid})"
                )
                self._on.cache.event(pod, EventType.WARNING, "BackOff", message)

    def _tell(
        self, work: PodWork, containers: Sequence[RuntimeContainer], *, over: bool = False
    ) -> PodStatus:
        """Compute the status and keep it; the status."""
        pod = work.pod
        judged = self._on.probes.judged(pod, containers)
        before = self._on.cache.get(pod.uid)
        status = computed(
            pod,
            PodFacts(
                containers=ContainerFacts(
                    containers=tuple(containers),
                    waiting=self._waiting.get(pod.uid, {}),
                    ready=judged.ready,
                    started=judged.started,
                    allocated=self._on.resizes.allocated(pod.uid),
                    devices=self._on.devices(pod.uid),
                ),
                before=before,
                qos_class=before.get("qosClass") or qos_of(pod),
                now=self._on.clock(),
                is_over=over or work.known_terminated,
                ended_by=work.ended_by,
                extra_conditions=self._on.resizes.conditions(pod.uid),
            ),
        )
        if status.get("reason") == DEADLINE_REASON != before.get("reason"):
            self._on.cache.event(pod, EventType.NORMAL, DEADLINE_REASON, DEADLINE_MESSAGE)
        self._on.cache.set(pod, status)
        return status

    async def _containers(self, pod_uid: str) -> tuple[RuntimeContainer, ...]:
        try:
            found = await self._on.runner.get_pod(pod_uid)
        except RunnerFailed as error:
            raise OperationFailed(f"cannot list containers: {error}") from error
        return () if found is None else found.containers


def _in_order_of_stopping(
    pod: AgentPod, containers: Sequence[RuntimeContainer]
) -> list[list[RuntimeContainer]]:
    """Groups that are stopped one after the other: app and init containers, then each sidecar."""
    running = [c for c in containers if c.phase is ContainerPhase.RUNNING]
    sidecars = [s.name for s in containers_of(pod) if s.kind is ContainerKind.SIDECAR]
    position = {name: place for place, name in enumerate(sidecars)}
    first = [c for c in running if c.name not in position]
    rest = sorted((c for c in running if c.name in position), key=lambda c: -position[c.name])
    return [group for group in (first, *([c] for c in rest)) if group]

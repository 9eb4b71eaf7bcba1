"""Looks at the runtime again and again, and says what has happened to containers (PLEG-1)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign_agent.metrics import PLEG_DISCARDED, PLEG_SECONDS
from numalign_agent.pleg.changes import (
    EventKind,
    LifecycleEvent,
    Phases,
    events_between,
    phases_of,
)
from numalign_agent.pleg.health import problem
from numalign_agent.runners.port import ContainerPhase, PodRunner, RunnerFailed, RuntimePod

EVERY_SECONDS = 1.0
MOST_ASKED = 200

_log = get_logger("pleg")


class LifecycleEvents:
    """Keeps the last listing. `send` takes an event, and says False where nobody has room."""

    def __init__(
        self, runner: PodRunner, send: Callable[[LifecycleEvent], bool], metrics: Metrics
    ) -> None:
        self._runner = runner
        self._send = send
        self._metrics = metrics
        self._pods: dict[str, RuntimePod] = {}
        self._phases: dict[str, Phases] = {}
        self._listed_at: float | None = None
        self._asked: dict[str, None] = {}
        self._wanted = asyncio.Event()
        runner.watch(self.ask)

    @property
    def pods(self) -> Mapping[str, RuntimePod]:
        """What the runtime had at the last look, by UID."""
        return self._pods

    def is_idle(self, pod_uid: str) -> bool:
        """Whether no container of a pod runs."""
        return not self.runs(pod_uid)

    def runs(self, pod_uid: str) -> bool:
        """Whether a container of a pod runs."""
        pod = self._pods.get(pod_uid)
        return pod is not None and any(
            container.phase is ContainerPhase.RUNNING for container in pod.containers
        )

    def ask(self, pod_uid: str) -> None:
        """Have one pod looked at before the next listing."""
        if len(self._asked) < MOST_ASKED:
            self._asked[pod_uid] = None
            self._wanted.set()

    def problem(self) -> str | None:
        """Why looking is not healthy."""
        return problem(self._listed_at, self._now())

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self.relist()
            next_at = self._now() + EVERY_SECONDS
            while (left := next_at - self._now()) > 0:
                try:
                    async with asyncio.timeout(left):
                        await self._wanted.wait()
                except TimeoutError:
                    break
                self._wanted.clear()
                await self._look_at_asked()

    async def relist(self) -> None:
        """Look at everything once."""
        began = self._now()
        try:
            listed = {pod.uid: pod for pod in await self._runner.list_pods()}
        except RunnerFailed as error:
            _log.warning("cannot list containers", error=str(error))
            return
        for uid in self._phases.keys() | listed.keys():
            self._compare(uid, listed.get(uid))
        self._listed_at = began
        self._metrics.histogram(PLEG_SECONDS).observe(self._now() - began)

    async def _look_at_asked(self) -> None:
        asked, self._asked = self._asked, {}
        for uid in asked:
            try:
                self._compare(uid, await self._runner.get_pod(uid), asked=True)
            except RunnerFailed as error:
                # Its events come with the next listing (PLEG-3).
                _log.warning("cannot look at a pod", pod_uid=uid, error=str(error))

    def _compare(self, uid: str, pod: RuntimePod | None, *, asked: bool = False) -> None:
        after = {} if pod is None else phases_of(pod.containers)
        events = events_between(uid, self._phases.get(uid, {}), after, asked=asked)
        if pod is None:
            self._pods.pop(uid, None)
            self._phases.pop(uid, None)
        else:
            self._pods[uid] = pod
            self._phases[uid] = after
        for event in events:
            if event.kind is EventKind.CONTAINER_CHANGED:
                continue
            if not self._send(event):
                self._metrics.counter(PLEG_DISCARDED).inc()
                _log.warning("an event of a container is lost", pod_uid=uid, kind=event.kind)

    def _now(self) -> float:
        # Asked for by other threads too, which have no event loop.
        return time.monotonic()

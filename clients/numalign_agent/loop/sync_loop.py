"""The sync loop: takes one thing at a time from its channels and handles it to the end (LOOP)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from numalign.telemetry.logs import get_logger
from numalign_agent.changes import PodChange
from numalign_agent.loop.channels import Channel, Channels
from numalign_agent.loop.monitor import Monitor
from numalign_agent.loop.pause import Pause
from numalign_agent.loop.runtime_health import RuntimeHealth
from numalign_agent.loop.sources_ready import SourcesReady
from numalign_agent.pleg.changes import EventKind, LifecycleEvent
from numalign_agent.pod import AgentPod
from numalign_agent.probes.results import ProbeChange, ProbeKind
from numalign_agent.runners.port import PodRunner, RunnerFailed

SYNC_SECONDS = 1.0
HOUSEKEEPING_SECONDS = 2.0
RUNTIME_SECONDS = 5.0

_log = get_logger("loop")


class LoopChannels:
    """Everything that the loop listens to, with the capacities of LOOP-2."""

    def __init__(self) -> None:
        self.config: Channel[PodChange] = Channel(50)
        self.pleg: Channel[LifecycleEvent] = Channel(1000)
        self.sync_tick: Channel[None] = Channel(1)
        self.liveness: Channel[ProbeChange] = Channel(20)
        self.readiness: Channel[ProbeChange] = Channel(20)
        self.startup: Channel[ProbeChange] = Channel(20)
        self.devices: Channel[tuple[str, ...]] = Channel(10)
        self.housekeeping_tick: Channel[None] = Channel(1)

    def of_probe(self, kind: ProbeKind) -> Channel[ProbeChange]:
        """The channel of a kind of probe."""
        return {
            ProbeKind.LIVENESS: self.liveness,
            ProbeKind.READINESS: self.readiness,
            ProbeKind.STARTUP: self.startup,
        }[kind]

    def all(self) -> tuple[Channel[Any], ...]:
        """All of them."""
        return (
            self.config, self.pleg, self.sync_tick, self.liveness, self.readiness,
            self.startup, self.devices, self.housekeeping_tick,
        )  # fmt: skip


class Handlers(Protocol):
    """What is done with what comes."""

    def handle(self, change: PodChange) -> None:
        """A source changed pods."""

    def sync(self, pod: AgentPod) -> None:
        """A pod is to be looked at."""


@dataclass(frozen=True, slots=True)
class LoopParts:
    """What the loop works with. `due` gives the UIDs of pods whose time has come.

    `pods` are the wanted ones by UID. `remove_dead` has dead containers of a pod removed.
    """

    channels: LoopChannels
    handlers: Handlers
    clean: Callable[[], Any]
    sources: SourcesReady
    runner: PodRunner
    pods: Callable[[], Mapping[str, AgentPod]]
    due: Callable[[], Iterable[str]]
    pleg_problem: Callable[[], str | None]
    remove_dead: Callable[[str], None]


class SyncLoop:
    """Goes round until cancelled."""

    def __init__(self, parts: LoopParts, sync_every: float) -> None:
        self._on = parts
        self._channels = Channels(parts.channels.all())
        self._monitor = Monitor(sync_every)
        self._health = RuntimeHealth()

    def problem(self) -> str | None:
        """Why the health check `syncloop` fails (LOOP-10)."""
        return self._monitor.problem(self._now())

    def not_ready(self) -> str | None:
        """Why no pod can run at present (LOOP-7)."""
        errors = self._errors()
        return "; ".join(errors) if errors else None

    async def run(self) -> None:
        """Go round. While the runtime has errors nothing is taken from any channel (LOOP-8)."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tick(self._on.channels.sync_tick, SYNC_SECONDS))
            group.create_task(self._tick(self._on.channels.housekeeping_tick, HOUSEKEEPING_SECONDS))
            group.create_task(self._poll_runtime())
            group.create_task(self._go_round())

    async def _go_round(self) -> None:
        pause = Pause()
        while True:
            errors = self._errors()
            if errors:
                _log.warning("Skipping pod synchronization", errors=errors)
                await asyncio.sleep(pause.seconds)
                pause = pause.longer()
                continue
            pause = Pause()
            self._monitor = self._monitor.seen(self._now())
            channel, item = await self._channels.take()
            await self._handle(channel, item)
            self._monitor = self._monitor.seen(self._now())

    async def _handle(self, channel: Channel[Any], item: Any) -> None:  # noqa: ANN401 - of the channel
        on, channels = self._on, self._on.channels
        if channel is channels.config:
            on.handlers.handle(item)
            on.sources.seen(item.source)
        elif channel is channels.pleg:
            self._lifecycle(item)
        elif channel is channels.sync_tick:
            self._sync_known(on.due())
        elif channel is channels.liveness:
            if not item.succeeded:
                self._sync_known((item.pod_uid,))
        elif channel in {channels.readiness, channels.startup}:
            self._sync_known((item.pod_uid,))
        elif channel is channels.devices:
            self._sync_known(item)
        else:
            await self._housekeeping()

    def _lifecycle(self, event: LifecycleEvent) -> None:
        """LOOP-4."""
        if event.kind is not EventKind.CONTAINER_REMOVED:
            self._sync_known((event.pod_uid,))
        if event.kind is EventKind.CONTAINER_DIED:
            self._on.remove_dead(event.pod_uid)

    def _sync_known(self, pod_uids: Iterable[str]) -> None:
        pods = self._on.pods()
        for uid in pod_uids:
            pod = pods.get(uid)
            if pod is not None:
                self._on.handlers.sync(pod)

    async def _housekeeping(self) -> None:
        """LOOP-6."""
        if not self._on.sources():
            _log.debug(
                "no housekeeping before all sources are ready", missing=self._on.sources.missing()
            )
            return
        await self._on.clean()

    async def _poll_runtime(self) -> None:
        """LOOP-7."""
        while True:
            try:
                not_ready = await self._on.runner.not_ready()
            except RunnerFailed as error:
                _log.warning("the runtime does not answer", error=str(error))
            else:
                self._health = self._health.answered(self._now(), not_ready)
            await asyncio.sleep(RUNTIME_SECONDS)

    async def _tick(self, channel: Channel[None], seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            channel.offer(None)

    def _errors(self) -> tuple[str, ...]:
        return self._health.errors(self._now(), self._on.pleg_problem())

    def _now(self) -> float:
        # Asked for by other threads too, which have no event loop.
        return time.monotonic()

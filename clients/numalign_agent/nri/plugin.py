"""The plugin as a whole: connected to the runtime whenever there is one, and to Admission.

Puts the parts together and keeps them running; what they do is in them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from numalign.kube.nri.v1alpha1 import api_pb2 as nri
from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Metrics
from numalign_agent.nri.admission import Admission
from numalign_agent.nri.api_calls import PodApi
from numalign_agent.nri.books import Books
from numalign_agent.nri.cgroup_readback import CgroupReadback
from numalign_agent.nri.chores import Chores
from numalign_agent.nri.evictions import Evictions
from numalign_agent.nri.following import Following
from numalign_agent.nri.judge import Judge
from numalign_agent.nri.metrics import CONNECTED, CONNECTIONS
from numalign_agent.nri.ownership import Ownership
from numalign_agent.nri.placing import Placing
from numalign_agent.nri.plan.abilities import event_mask
from numalign_agent.nri.pod_specs.port import FirstOf
from numalign_agent.nri.quotas import Quotas
from numalign_agent.nri.registration import Registration, UpdateFailed, told_by_registration
from numalign_agent.nri.reporter import Reporter
from numalign_agent.nri.runtime_events import RuntimeEvents
from numalign_agent.nri.service import PLUGIN_SERVICE, PluginService, SynchronizeParts
from numalign_agent.nri.settings import NriSettings, Updates
from numalign_agent.nri.settling import Settling
from numalign_agent.nri.start_times import StartTimes
from numalign_agent.nri.wire.answerer import Services
from numalign_agent.nri.wire.errors import CallFailed, Disconnected

NAME = "numalign"

_FIRST_WAIT = 0.1
_LONGEST_WAIT = 5.0
_LASTING = 5.0
"""Seconds after which a connection was a good one, and the next is tried at once."""

_SAY_EVERY = 60.0
_SYNCHRONIZE_SECONDS = 10.0
_MISSED_AFTER = 1.0
"""Seconds after which a runtime is asked again for what it has: older ones connect a plugin a
little later than they ask it, and what starts in between is told to nobody."""

_UPDATE_SECONDS = 10.0

_log = get_logger("nri")


class Plugin:
    """One plugin. `run` ends only by being cancelled.

    `not_connected` says why the runtime is not connected, None while it is; it may be read from
    another thread.
    """

    def __init__(
        self,
        *,
        admission: Admission,
        specs: FirstOf,
        api: PodApi | None,
        metrics: Metrics,
        settings: NriSettings,
        cgroup_root: Path,
        ownership: Ownership,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._settings = settings
        self._sleep = sleep
        self._metrics = metrics
        self.not_connected: str | None = "Admission has not told yet which pods it has"
        self._connected = metrics.gauge(CONNECTED)
        self._connections = metrics.counter(CONNECTIONS)
        self._books = Books(settings.owner, ownership, set_quota=settings.lift_quota)
        self._reporter = Reporter(metrics, api)
        self._evictions = Evictions(api)
        self._judge = Judge(
            self._books, admission, specs, self._reporter, self._evictions, settings
        )
        self._chores = Chores(admission, self._judge, self._books)
        self._placing = Placing(self._books, admission, self._reporter, settings)
        self._following = Following(admission, self._books, self._wake)
        readback = CgroupReadback(cgroup_root)
        self._settling = Settling(
            self._books,
            admission,
            self._following,
            self._judge,
            self._chores,
            self._reporter,
            readback,
            Quotas(cgroup_root, metrics),
            metrics,
            settings,
        )
        self._events = RuntimeEvents(
            self._books,
            admission,
            self._judge,
            self._placing,
            self._chores,
            self._reporter,
            ownership,
            settings,
            StartTimes(settings.host_root / "proc").of,
            readback.read,
            self._wake,
        )

    async def run(self) -> None:
        """Follow Admission, and be connected to the runtime as soon as its records are known."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for part in (self._following, self._chores, self._reporter):
                    tasks.create_task(part.run())
                tasks.create_task(self._stay_connected())
        finally:
            await self._evictions.close()
            await self._placing.close()

    def _wake(self) -> None:
        self._settling.wake()

    async def _stay_connected(self) -> None:
        await self._following.until_known()
        self.not_connected = f"not connected yet to the runtime at {self._settings.socket}"
        time = asyncio.get_running_loop().time
        wait, said_at = _FIRST_WAIT, -_SAY_EVERY
        while True:
            began = time()
            try:
                if await self._connection() and time() - began > _LASTING:
                    wait, said_at = _FIRST_WAIT, -_SAY_EVERY
            except (Disconnected, CallFailed) as error:
                self.not_connected = f"no runtime with NRI at {self._settings.socket}: {error}"
                if time() - said_at >= _SAY_EVERY:
                    said_at = time()
                    _log.warning(
                        "no container runtime with NRI to connect to; still trying. containerd "
                        "1.7 and CRI-O before 1.30 have NRI off unless it is configured",
                        socket=str(self._settings.socket),
                        error=str(error),
                    )
            await self._sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    async def _connection(self) -> bool:
        """Be connected once, until it ends. Whether the runtime has synchronized meanwhile."""
        synchronized, shutdown = asyncio.Event(), asyncio.Event()
        service = PluginService(self._events, self._metrics, synchronized.set, shutdown.set)
        registration = await Registration.open(
            self._settings.socket, service.services(), NAME, self._settings.index
        )
        ended = asyncio.create_task(registration.ended())
        try:
            if not await _first(synchronized.wait(), {ended}, _SYNCHRONIZE_SECONDS):
                _log.warning("the runtime did not synchronize; connecting anew")
                return False
            self._connections.inc()
            self._connected.set(1)
            self.not_connected = None
            _log.info("connected to the runtime", socket=str(self._settings.socket))
            settling = asyncio.create_task(self._settle(registration))
            try:
                await _first(shutdown.wait(), {ended, settling}, None)
                if settling.done():
                    settling.result()
            finally:
                settling.cancel()
                await asyncio.gather(settling, return_exceptions=True)
        finally:
            self._connected.set(0)
            self.not_connected = f"disconnected from the runtime at {self._settings.socket}"
            ended.cancel()
            await registration.close()
        _log.warning("disconnected from the runtime: containers start unpinned until it is back")
        return True

    async def _settle(self, registration: Registration) -> None:
        asyncio.get_running_loop().call_later(_MISSED_AFTER, self._settling.look_again)
        self._settling.wake()

        async def tell(whole: bool) -> None:
            if self._settings.updates is Updates.DIRECT and not whole:
                await self._tell_directly(registration)
            else:
                await self._tell_by_registration()

        await self._settling.run(tell)

    async def _tell_directly(self, registration: Registration) -> None:
        updates = self._events.pending()
        try:
            failed = await registration.update(updates, _UPDATE_SECONDS)
        except (Disconnected, CallFailed) as error:
            raise UpdateFailed(str(error)) from error
        if failed:
            _log.warning("the runtime could not change containers", containers=failed)

    async def _tell_by_registration(self) -> None:
        synchronized = asyncio.Event()
        await told_by_registration(
            self._settings.socket,
            self._answering_once(synchronized),
            synchronized,
            self._settings.index,
        )

    def _answering_once(self, synchronized: asyncio.Event) -> Services:
        """What a short registration serves: it asks for an event that means nothing to it."""
        parts = SynchronizeParts()

        async def configure(_: bytes) -> bytes:
            mask = event_mask(nri.POST_UPDATE_CONTAINER)
            return nri.ConfigureResponse(events=mask).SerializeToString()

        async def synchronize(payload: bytes) -> bytes:
            whole = parts.take(nri.SynchronizeRequest.FromString(payload))
            if whole is None:
                return nri.SynchronizeResponse(more=True).SerializeToString()
            updates = self._events.synchronize(*whole)
            synchronized.set()
            return nri.SynchronizeResponse(update=updates).SerializeToString()

        async def nothing(_: bytes) -> bytes:
            return b""

        return {
            PLUGIN_SERVICE: {
                "Configure": configure,
                "Synchronize": synchronize,
                "StateChange": nothing,
                "Shutdown": nothing,
            }
        }


async def _first(
    wanted: Coroutine[Any, Any, Any], others: set[asyncio.Task[None]], seconds: float | None
) -> bool:
    """Whether `wanted` comes before all `others`, and within `seconds`."""
    task = asyncio.create_task(wanted)
    try:
        done, _ = await asyncio.wait(
            {task, *others}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        return task in done
    finally:
        task.cancel()

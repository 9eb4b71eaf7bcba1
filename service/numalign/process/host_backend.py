"""Devices of real plugins: the plugin host behind the device provider, put together and run.

Separate from the host, which knows no settings, and from the static backend, which needs no
gRPC: a process without plugins loads none of this.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from numalign.config.settings import Settings
from numalign.device.capacity import capacity
from numalign.device.engine import DeviceEngine
from numalign.device.inventory import Inventory
from numalign.device.plugin_host.changes import GracePassed, WaitedOut
from numalign.device.plugin_host.host import PluginHost
from numalign.device.plugin_host.inventory_feed import InventoryFeed
from numalign.device.plugin_host.observer import HostObserver
from numalign.device.plugin_host.plugin_directory import make_ready
from numalign.device.plugin_host.registration import RegistrationServicer
from numalign.device.plugin_host.strategies import HostStrategies
from numalign.device.plugin_host.texts import PLUGIN_TYPE
from numalign.device.plugin_host.watched_plugins import DevicePluginHandler
from numalign.device.state import DeviceState
from numalign.device.strategies import DeviceStrategies
from numalign.kube.deviceplugin.v1beta1.api_pb2_grpc import add_RegistrationServicer_to_server
from numalign.model.machine import Machine
from numalign.plugins.types import DRA_PLUGIN_TYPE
from numalign.plugins.watcher import PluginWatcher
from numalign.process.device_life import DeviceLife
from numalign.process.watched_directory import make_watched
from numalign.provider.ledger import Ledger
from numalign.rpc.methods import Registration
from numalign.rpc.server import ServiceServer
from numalign.telemetry.logs import get_logger
from numalign.telemetry.tracing import active_tracer

GRACE_CHECK_SECONDS = 10.0
"""How often it is asked which resources are to be given up, as often as a node's status."""

_log = get_logger("device-plugins")


class HostBackend:
    """Device plugins that register here."""

    def __init__(
        self,
        settings: Settings,
        machine: Machine,
        strategies: HostStrategies,
        observer: HostObserver,
    ) -> None:
        self._settings = settings.device_plugins
        self._sockets = settings.sockets
        self._limits = settings.limits
        self._strategies = strategies
        self._observer = observer
        self._dra_is_served = settings.dra.enabled
        self._started = time.monotonic()
        self._tasks: list[asyncio.Task[None]] = []
        self._server: ServiceServer | None = None
        self.plugins = PluginHost(
            nodes=machine.node_ids(),
            strategies=strategies,
            timeout=settings.provider_timeout,
            clock=self._now,
            observer=observer,
        )

    def inventory(self) -> Inventory:
        """Nothing, until plugins register."""
        return Inventory()

    def strategies(self, chosen: DeviceStrategies) -> DeviceStrategies:
        """Plugins that were there before the start are waited for, unless a kubelet would not."""
        if not self._strategies.waits_for_reports:
            return chosen
        return replace(chosen, retry_after=self._settings.retry_after)

    def attach(self, engine: DeviceEngine, ledger: Ledger[DeviceState]) -> DeviceLife:
        """Make the directories ready; plugins are taken in from `serving` on.

        Raises ConfigError and StartError naming the directory.
        """
        feed = InventoryFeed(engine, ledger, self._observer.health_changed)
        self.plugins.report = feed.put
        watched = self._settings.plugins_registry
        socket = make_ready(self._settings.directory, self._sockets, watched=watched is not None)
        if watched is not None:
            make_watched(watched, "device")

        async def serving() -> None:
            self._run(feed.run())
            self._run(self._keep_time(feed))
            self._server = self._new_server(socket)
            await self._server.start()
            if watched is not None:
                handlers = {PLUGIN_TYPE: DevicePluginHandler(self.plugins)}
                self._run(PluginWatcher(watched, handlers, elsewhere=self._elsewhere).run())

        return DeviceLife(serving=serving, close=self._close, pre_start=engine.pre_start)

    def _elsewhere(self, type_: str) -> bool:
        """Whether the DRA service takes plugins of this type in."""
        return self._dra_is_served and type_ == DRA_PLUGIN_TYPE

    def _now(self) -> float:
        return time.monotonic() - self._started

    def _new_server(self, socket: Path) -> ServiceServer:
        servicer = RegistrationServicer(self.plugins, self._settings.directory, self._observer)
        registration = Registration(add_RegistrationServicer_to_server, servicer)
        return ServiceServer((registration,), socket, self._sockets, active_tracer(), self._limits)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        task.add_done_callback(_tell)
        self._tasks.append(task)

    async def _keep_time(self, feed: InventoryFeed) -> None:
        """Give up resources after their grace period, and waiting after the report deadline."""
        deadline = self._settings.report_deadline
        while True:
            left = deadline - self._now()
            awaited = sorted(n for n, r in feed.inventory.resources.items() if r.awaited)
            if awaited and left <= 0:
                _log.warning("device plugins did not come back", resources=awaited)
                feed.put(WaitedOut())
            elif capacity(feed.inventory, self._now()).deleted:
                feed.put(GracePassed(self._now()))
            await feed.settled()
            pause = min(GRACE_CHECK_SECONDS, left) if awaited and left > 0 else GRACE_CHECK_SECONDS
            await asyncio.sleep(pause)

    async def _close(self) -> None:
        if self._server is not None:
            await self._server.stop(0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.plugins.close()


def _tell(task: asyncio.Task[None]) -> None:
    """Say that a task which should never end has ended, and why."""
    if not task.cancelled():
        _log.error("device plugins are not followed any more", exc_info=task.exception())

"""Where the device provider's devices come from: one backend for each mode, chosen once.

Separate from the provider parts, which put a ledger and a servicer around whatever it is. A
backend gives the inventory to start with and the port to the plugins; once the ledger is open
it is told, and from then on it reports what changes.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Protocol

from numalign.config.settings import DeviceSource, Settings
from numalign.device.engine import DeviceEngine
from numalign.device.inventory import Inventory
from numalign.device.listing import Listed
from numalign.device.plugin_host.strategies import HostStrategies
from numalign.device.ports import DevicePlugins
from numalign.device.state import DeviceState
from numalign.device.static_check import device_problems
from numalign.device.static_plugins import StaticPlugins, static_inventory
from numalign.device.static_reload import reloaded
from numalign.device.strategies import DeviceStrategies
from numalign.document.problems import DocumentError
from numalign.errors import ConfigError
from numalign.model.machine import Machine
from numalign.process.device_life import DeviceLife
from numalign.provider.ledger import Ledger
from numalign.telemetry.metrics import Metrics


class DeviceBackend(Protocol):
    """A source of devices."""

    @property
    def plugins(self) -> DevicePlugins:
        """Whom the engine asks about devices of a resource."""

    def inventory(self) -> Inventory:
        """What is known at the start."""

    def strategies(self, chosen: DeviceStrategies) -> DeviceStrategies:
        """The engine's strategies, as they are to be with devices from here."""

    def attach(self, engine: DeviceEngine, ledger: Ledger[DeviceState]) -> DeviceLife:
        """The books are open: changes go to them from now on. Raises StartError."""


class StaticBackend:
    """Devices that the configuration describes."""

    def __init__(self, settings: Settings, machine: Machine, listed: Listed) -> None:
        """Raises ConfigError where a device cannot be on the machine."""
        self._listed = listed
        self._nodes = machine.node_ids()
        self._check(settings)
        self._configured = settings.devices
        self.plugins = StaticPlugins(settings.devices)

    def inventory(self) -> Inventory:
        """Every configured device."""
        return static_inventory(self._configured)

    def strategies(self, chosen: DeviceStrategies) -> DeviceStrategies:
        """As chosen: a configuration that lacks a resource is not waited for."""
        return chosen

    def attach(self, engine: DeviceEngine, ledger: Ledger[DeviceState]) -> DeviceLife:
        """Devices change by a reload alone."""
        started = time.monotonic()

        async def reload(settings: Settings) -> tuple[str, ...]:
            before, after = self._configured, settings.devices
            if after == before:
                return ()
            now = time.monotonic() - started

            def noted(state: DeviceState) -> DeviceState:
                inventory = reloaded(engine.inventory, before, after, now)
                self.plugins.configure(after)
                if inventory is engine.inventory:
                    return state  # only plugins that are not there changed: nobody told anything
                engine.update_inventory(inventory)
                return engine.noted(state)

            self._configured = after
            await ledger.facts_changed(noted)
            return ("numalign.devices",)

        return DeviceLife(check=self._check, reload=reload)

    def _check(self, settings: Settings) -> None:
        refuse_devices(settings, self._nodes, self._listed)


def refuse_devices(settings: Settings, nodes: Collection[int], listed: Listed) -> None:
    """Raise ConfigError naming every configured device that cannot be on these NUMA nodes."""
    problems = tuple(device_problems(settings.devices, listed, nodes))
    if problems:
        raise DocumentError(*problems)


def device_backend(
    settings: Settings, machine: Machine, host: HostStrategies, metrics: Metrics
) -> DeviceBackend:
    """The backend that `numalign.devicePlugins.mode` names; only that one is loaded."""
    mode = settings.device_plugins.mode
    if mode is DeviceSource.HOST:
        from numalign.device.plugin_host.observer import PluginObserver  # noqa: PLC0415 - memory
        from numalign.process.host_backend import HostBackend  # noqa: PLC0415 - memory

        return HostBackend(settings, machine, host, PluginObserver(metrics))
    if mode is DeviceSource.STATIC:
        return StaticBackend(settings, machine, host.listed)
    raise ConfigError(f"numalign.devicePlugins.mode: {mode.value} has an engine of its own")

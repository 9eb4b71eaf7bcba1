"""Reading the configuration again and putting it into force, all of it or nothing.

Separate from the Control service, which only asks for it; SIGHUP asks as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack

from numalign.config.admission_chain import CHAIN_KEYS
from numalign.config.settings import Service, Settings
from numalign.process.part import Part
from numalign.process.second_owner import watch as second_owner
from numalign.telemetry.logs import get_logger
from numalign.v1 import control_pb2 as ct

ReadSettings = Callable[[], Settings]
"""Reads the configuration that the process was started with. Raises ConfigError."""

Listener = Callable[[Settings], tuple[str, ...]]
"""Puts settings of the process itself into force and names them, by path. It cannot refuse."""

_log = get_logger("control")

_EVERYWHERE = {
    "compatibility": "numalign.compatibility",
    "machine": "numalign.machine",
    "runtime_directory": "numalign.runtimeDirectory",
    "state_directory": "numalign.stateDirectory",
    "sockets": "numalign.sockets",
    "limits": "numalign.limits",
    "endpoints": "numalign.endpoints",
    "metrics": "numalign.metrics",
    "log": "numalign.log",
}
_GATES = {"gates": "featureGates"}
_OWNERS = second_owner.SETTINGS
_PLACEMENT = {"placement": "numalign.placement"}
_TOPOLOGY = {"topology": "topologyManagerPolicy"}
_OF_SERVICE = {
    Service.ADMISSION: {
        **_GATES,
        "cpu": "cpuManagerPolicy",
        "memory": "memoryManagerPolicy",
        "host_root": "numalign.hostRoot",
        "owner": "numalign.owner",
        "pod_resources": "numalign.podResources",
        "listen": "numalign.listen",
        "admission": "numalign.admission",
        "journal": "numalign.journal",
    },
    Service.TOPOLOGY: {
        **_GATES,
        **_TOPOLOGY,
        **_PLACEMENT,
        "providers": "numalign.providers",
        "provider_timeout": "numalign.providerTimeout",
        "queue_depth": "numalign.queueDepth",
        "history_length": "numalign.historyLength",
        "provider_directories": "numalign.providerDirectories",
        "providers_registry": "numalign.providersRegistry",
        "dra": "numalign.dra",
        "owner": "numalign.owner",
    },
    Service.CPU: {**_GATES, **_TOPOLOGY, **_PLACEMENT, **_OWNERS, "cpu": "cpuManagerPolicy"},
    Service.MEMORY: {**_GATES, **_PLACEMENT, **_OWNERS, "memory": "memoryManagerPolicy"},
    Service.DEVICE: {
        **_GATES,
        "devices": "numalign.devices",
        "device_plugins": "numalign.devicePlugins",
        "dra": "numalign.dra",
    },
    Service.DRA: {**_GATES, "dra": "numalign.dra"},
}


class Reloader:
    """Applies a configuration that was read again to the parts of a process.

    `listeners` are told of it when every part has taken it.
    """

    def __init__(self, settings: Settings, read: ReadSettings, parts: Sequence[Part]) -> None:
        self._started_with = settings
        self._latest = settings
        self._read = read
        self._parts = parts
        self._in_force: dict[str, Settings] = {}
        self._one_at_a_time = asyncio.Lock()
        self.listeners: list[Listener] = []

    async def reload(self) -> ct.ReloadResponse:
        """Read and apply; the paths of what is in force now, and of what needs a restart.

        Raises ConfigError where the file or a part refuses, and nothing has changed then.
        """
        async with self._one_at_a_time:
            settings = self._read()
            applied = await self._apply(settings)
            for listener in self.listeners:
                applied.update(listener(settings))
            for path in applied:
                self._in_force[path] = settings
            self._latest = settings
        response = ct.ReloadResponse(
            applied=sorted(applied), needs_restart=self._other_than_in_force(settings)
        )
        _log.info(
            "configuration reloaded",
            applied=list(response.applied),
            needs_restart=list(response.needs_restart),
        )
        return response

    def latest(self) -> Settings:
        """The settings that were read last and not refused."""
        return self._latest

    async def _apply(self, settings: Settings) -> set[str]:
        changes = [await part.check(settings) for part in self._parts]
        applied: set[str] = set()
        async with AsyncExitStack() as turn:
            if any(change.exclusive for change in changes):
                for part in self._parts:
                    if part.turn is not None:
                        await turn.enter_async_context(part.turn())
            for change in changes:
                change.verify()
            for change in changes:
                applied.update(await change.apply())
        return applied

    def _other_than_in_force(self, settings: Settings) -> list[str]:
        services = [part.service for part in self._parts]
        others = [
            path
            for name, path in settings_of(services).items()
            if getattr(settings, name)
            != getattr(self._in_force.get(path, self._started_with), name)
        ]
        others += [
            key
            for key in kubelet_keys_of(services)
            if settings.kubelet.get(key)
            != self._in_force.get(key, self._started_with).kubelet.get(key)
        ]
        return sorted(others)


def settings_of(services: Iterable[Service]) -> dict[str, str]:
    """Names of the settings that processes with these services read, with their paths.

    One path stands for a group that is used together.
    """
    paths = dict(_EVERYWHERE)
    for service in services:
        paths |= _OF_SERVICE[service]
    return paths


def kubelet_keys_of(services: Iterable[Service]) -> tuple[str, ...]:
    """Keys of the KubeletConfiguration that these services read as they are written."""
    return CHAIN_KEYS if Service.ADMISSION in services else ()

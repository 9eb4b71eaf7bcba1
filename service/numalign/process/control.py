"""The Control service: reading the configuration again, and saying how a process stands."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import version

from numalign.config.settings import Settings
from numalign.process.part import Part
from numalign.rpc.context import Context
from numalign.rpc.methods import Registration
from numalign.telemetry.logs import get_logger
from numalign.v1 import control_pb2 as ct
from numalign.v1 import control_pb2_grpc as ct_grpc

ReadSettings = Callable[[], Settings]
"""Reads the configuration that the process was started with. Raises ConfigError."""

_log = get_logger("control")


class Reloader:
    """Applies a configuration that was read again to the parts of a process."""

    def __init__(self, settings: Settings, read: ReadSettings, parts: Sequence[Part]) -> None:
        self._settings = settings
        self._read = read
        self._parts = parts

    async def reload(self) -> ct.ReloadResponse:
        """Read and apply. Raises ConfigError for a wrong one, and nothing has changed then."""
        settings = self._read()
        applied: list[str] = []
        for part in self._parts:
            applied += await part.reload(settings)
        response = ct.ReloadResponse(
            applied=sorted(set(applied)),
            needs_restart=[
                path for path in changed_settings(self._settings, settings) if path not in applied
            ],
        )
        _log.info(
            "configuration reloaded",
            applied=list(response.applied),
            needs_restart=list(response.needs_restart),
        )
        return response


class ControlServicer(ct_grpc.ControlServicer):
    """Serves one process."""

    def __init__(
        self,
        reload: Callable[[], Awaitable[ct.ReloadResponse]],
        parts: Sequence[Part],
        settings: Settings,
    ) -> None:
        self._reload = reload
        self._parts = parts
        self._settings = settings

    async def Reload(self, request: ct.ReloadRequest, context: Context) -> ct.ReloadResponse:  # noqa: N802, ARG002 - the contract's
        """Reads the configuration again."""
        return await self._reload()

    async def GetStatus(  # noqa: N802 - the contract's
        self,
        request: ct.GetStatusRequest,  # noqa: ARG002 - the contract's
        context: Context,  # noqa: ARG002 - the contract's
    ) -> ct.GetStatusResponse:
        """What the process is and how it stands."""
        return ct.GetStatusResponse(
            services=[part.service.value for part in self._parts],
            version=version("numalign"),
            pid=os.getpid(),
            compatibility=self._settings.compatibility.value,
            reports=[
                *self._settings.warnings,
                *(report for part in self._parts for report in part.reports()),
            ],
            config_generation=1,
        )


def control_registration(servicer: ControlServicer) -> Registration:
    """The servicer, for a server of either kind."""
    return Registration(ct_grpc.add_ControlServicer_to_server, servicer)


_PATHS = {
    "topology": "topologyManagerPolicy",
    "cpu": "cpuManagerPolicy",
    "memory": "memoryManagerPolicy",
    "gates": "featureGates",
    "compatibility": "numalign.compatibility",
    "machine": "numalign.machine",
    "devices": "numalign.devices",
    "device_plugins": "numalign.devicePlugins",
    "providers": "numalign.providers",
    "provider_timeout": "numalign.providerTimeout",
    "queue_depth": "numalign.queueDepth",
    "history_length": "numalign.historyLength",
    "owner": "numalign.owner",
    "runtime_directory": "numalign.runtimeDirectory",
    "state_directory": "numalign.stateDirectory",
    "sockets": "numalign.sockets",
    "endpoints": "numalign.endpoints",
    "pod_resources": "numalign.podResources",
    "metrics": "numalign.metrics",
    "log": "numalign.log",
}


def changed_settings(old: Settings, new: Settings) -> list[str]:
    """Paths of the settings that differ; one path stands for a group that is used together."""
    return [path for name, path in _PATHS.items() if getattr(old, name) != getattr(new, name)]

"""The Control service: reading the configuration again, and saying how a process stands.

What a reload does is in `numalign.process.reload`.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from importlib.metadata import version

from numalign.config.machine_source import read_machine
from numalign.config.placement import switches_on
from numalign.config.settings import MachineInline, Settings
from numalign.config.settings_document import settings_document, without_secrets
from numalign.process.part import Part
from numalign.rpc.context import Context
from numalign.rpc.methods import Registration
from numalign.v1 import control_pb2 as ct
from numalign.v1 import control_pb2_grpc as ct_grpc


class ControlServicer(ct_grpc.ControlServicer):
    """Serves one process."""

    def __init__(
        self,
        reload: Callable[[], Awaitable[ct.ReloadResponse]],
        parts: Sequence[Part],
        settings: Callable[[], Settings],
    ) -> None:
        """Make it. `settings` are those that were read last and not refused."""
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
            compatibility=self._settings().compatibility.value,
            reports=[
                *self._settings().warnings,
                *(report for part in self._parts for report in part.reports()),
                *(notice for part in self._parts for notice in part.notices()),
            ],
            config_generation=max(part.generation() for part in self._parts),
            placement=switches_on(self._settings().placement),
        )

    async def GetConfiguration(  # noqa: N802 - the contract's
        self,
        request: ct.GetConfigurationRequest,  # noqa: ARG002 - the contract's
        context: Context,  # noqa: ARG002 - the contract's
    ) -> ct.GetConfigurationResponse:
        """The configuration, with the machine as it is read now and without what may be secret."""
        settings = self._settings()
        machine = await asyncio.to_thread(read_machine, settings.machine)
        shown = replace(settings, machine=MachineInline(machine.machine))
        document = without_secrets(settings_document(shown))
        return ct.GetConfigurationResponse(document=json.dumps(document))


def control_registration(servicer: ControlServicer) -> Registration:
    """The servicer, for a server of either kind."""
    return Registration(ct_grpc.add_ControlServicer_to_server, servicer)

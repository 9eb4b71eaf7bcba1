"""What a device plugin serves: itself, and what the plugin watcher asks it."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

from grpc import StatusCode, aio

from examples.device_plugin.devices import FileDevice, preferred, read_devices
from numalign.kube.deviceplugin.v1beta1 import api_pb2 as dp
from numalign.kube.deviceplugin.v1beta1 import api_pb2_grpc as dp_grpc
from numalign.kube.pluginregistration.v1 import api_pb2 as pr
from numalign.kube.pluginregistration.v1 import api_pb2_grpc as pr_grpc

_log = logging.getLogger("device_plugin")

Context = aio.ServicerContext[Any, Any]

MOUNTED = Path("/var/run/devices")
"""Where a container sees the files of its devices."""


class FilePlugin(dp_grpc.DevicePluginServicer):
    """Serves the files of `directory` as devices of `resource`.

    The directory is looked at every `interval` seconds. `pre_start` asks for a call before
    every start of a container. `journal`, if there is one, gets a line of JSON for every call.
    """

    def __init__(
        self,
        resource: str,
        directory: Path,
        *,
        interval: float,
        pre_start: bool = False,
        journal: Path | None = None,
    ) -> None:
        self._resource = resource
        self._directory = directory
        self._interval = interval
        self._pre_start = pre_start
        self._journal = journal

    async def GetDevicePluginOptions(
        self, request: dp.Empty, context: Context
    ) -> dp.DevicePluginOptions:
        """The optional calls that this plugin wants."""
        return dp.DevicePluginOptions(
            pre_start_required=self._pre_start, get_preferred_allocation_available=True
        )

    async def ListAndWatch(
        self, request: dp.Empty, context: Context
    ) -> AsyncIterator[dp.ListAndWatchResponse]:
        """All devices at once, and all of them again whenever one has changed."""
        sent = None
        while True:
            devices = read_devices(self._directory)
            if devices != sent:
                yield dp.ListAndWatchResponse(
                    devices=[device.message() for device in devices.values()]
                )
                sent = devices
            await asyncio.sleep(self._interval)

    async def GetPreferredAllocation(
        self, request: dp.PreferredAllocationRequest, context: Context
    ) -> dp.PreferredAllocationResponse:
        """Devices that are close to each other."""
        devices = read_devices(self._directory)
        response = dp.PreferredAllocationResponse()
        for asked in request.container_requests:
            ids = preferred(
                devices,
                asked.available_deviceIDs,
                asked.must_include_deviceIDs,
                asked.allocation_size,
            )
            self._note("GetPreferredAllocation", ids)
            response.container_responses.add(deviceIDs=ids)
        return response

    async def Allocate(self, request: dp.AllocateRequest, context: Context) -> dp.AllocateResponse:
        """What each container needs to use its devices."""
        devices = read_devices(self._directory)
        response = dp.AllocateResponse()
        for asked in request.container_requests:
            ids = sorted(asked.devices_ids)
            unknown = [id_ for id_ in ids if id_ not in devices]
            if unknown:
                await context.abort(
                    StatusCode.INVALID_ARGUMENT, f"no such device: {', '.join(unknown)}"
                )
            self._note("Allocate", ids)
            response.container_responses.append(self._needs(ids, devices))
        return response

    async def PreStartContainer(
        self, request: dp.PreStartContainerRequest, context: Context
    ) -> dp.PreStartContainerResponse:
        """The moment to reset the devices; files need nothing."""
        self._note("PreStartContainer", sorted(request.devices_ids))
        return dp.PreStartContainerResponse()

    def _needs(
        self, ids: Iterable[str], devices: Mapping[str, FileDevice]
    ) -> dp.ContainerAllocateResponse:
        held = [devices[id_] for id_ in ids]
        listed = ",".join(device.id for device in held)
        return dp.ContainerAllocateResponse(
            envs={re.sub(r"\W", "_", self._resource).upper(): listed},
            mounts=[
                dp.Mount(
                    container_path=str(MOUNTED / device.id),
                    host_path=str(device.path.absolute()),
                    read_only=True,
                )
                for device in held
            ],
            devices=[
                dp.DeviceSpec(container_path=device.node, host_path=device.node, permissions="rw")
                for device in held
                if device.node
            ],
            annotations={self._resource: listed},
            cdi_devices=[dp.CDIDevice(name=device.cdi) for device in held if device.cdi],
        )

    def _note(self, call: str, ids: list[str]) -> None:
        if self._journal is None:
            return
        line = json.dumps({"call": call, "resource": self._resource, "ids": ids})
        with self._journal.open("a", encoding="utf-8") as journal:
            journal.write(line + "\n")


class WatchedRegistration(pr_grpc.RegistrationServicer):
    """What the plugin watcher asks, served beside the plugin on the same socket."""

    def __init__(self, resource: str) -> None:
        self._resource = resource

    async def GetInfo(self, request: pr.InfoRequest, context: Context) -> pr.PluginInfo:
        """Who this is; without an endpoint it is called on this very socket."""
        return pr.PluginInfo(
            type="DevicePlugin", name=self._resource, supported_versions=["v1beta1"]
        )

    async def NotifyRegistrationStatus(
        self, request: pr.RegistrationStatus, context: Context
    ) -> pr.RegistrationStatusResponse:
        """How it went."""
        if request.plugin_registered:
            _log.info("registered by the plugin watcher")
        else:
            _log.error("not registered: %s", request.error)
        return pr.RegistrationStatusResponse()

"""A process that is the device plugins of a scenario: `python -m numalign.replay.plugin_process`.

It is told on standard input, a line of JSON each, which plugin there is, what it lists and how
it answers, and says `{}` when that is done, or `{"error": ...}`. The plugins know nothing of
numalign: they have sockets and register, as plugins do with a kubelet.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from grpc import StatusCode, aio

from numalign.device.ports import PluginError
from numalign.device.static_plugins import preferred_ids
from numalign.kube.deviceplugin.v1beta1 import api_pb2 as dp
from numalign.kube.deviceplugin.v1beta1 import api_pb2_grpc as dp_grpc
from numalign.model.ids import DeviceId
from numalign.model.settings import PreferredAllocation
from numalign.replay.recordings import Json

_REGISTER_SECONDS = 20.0

Context = aio.ServicerContext[Any, Any]


class RecordedPlugin(dp_grpc.DevicePluginServicer):
    """Lists and answers as an entry of a scenario's `devices` says."""

    def __init__(self, entry: Json) -> None:
        self._entry = entry
        self._changed = asyncio.Event()

    def change(self, entry: Json) -> None:
        """List and answer as this entry says from now on; the list is sent."""
        self._entry = entry
        self._changed.set()
        self._changed = asyncio.Event()

    async def GetDevicePluginOptions(  # noqa: N802 - the contract's
        self,
        request: dp.Empty,  # noqa: ARG002 - the contract's
        context: Context,  # noqa: ARG002 - as above
    ) -> dp.DevicePluginOptions:
        """Whether preferences can be asked for."""
        return dp.DevicePluginOptions(
            get_preferred_allocation_available=self._rule is not PreferredAllocation.NONE
        )

    async def ListAndWatch(  # noqa: N802 - the contract's
        self,
        request: dp.Empty,  # noqa: ARG002 - the contract's
        context: Context,  # noqa: ARG002 - as above
    ) -> AsyncIterator[dp.ListAndWatchResponse]:
        """The list, and again whenever it is changed."""
        while True:
            changed = self._changed
            yield dp.ListAndWatchResponse(
                devices=[_device(device) for device in self._entry["devices"]]
            )
            await changed.wait()

    async def GetPreferredAllocation(  # noqa: N802 - the contract's
        self, request: dp.PreferredAllocationRequest, context: Context
    ) -> dp.PreferredAllocationResponse:
        """By the recorded rule."""
        response = dp.PreferredAllocationResponse()
        for asked in request.container_requests:
            try:
                ids = preferred_ids(
                    self._rule,
                    map(DeviceId, asked.available_deviceIDs),
                    map(DeviceId, asked.must_include_deviceIDs),
                    asked.allocation_size,
                )
            except PluginError as error:
                await context.abort(StatusCode.UNKNOWN, str(error))
            response.container_responses.add(deviceIDs=ids)
        return response

    async def Allocate(self, request: dp.AllocateRequest, context: Context) -> dp.AllocateResponse:  # noqa: N802 - the contract's
        """Nothing is needed, or the recorded error."""
        error = self._entry.get("allocate_error")
        if error is not None:
            await context.abort(StatusCode.UNKNOWN, error)
        return dp.AllocateResponse(
            container_responses=[dp.ContainerAllocateResponse() for _ in request.container_requests]
        )

    async def PreStartContainer(  # noqa: N802 - the contract's
        self,
        request: dp.PreStartContainerRequest,  # noqa: ARG002 - the contract's
        context: Context,  # noqa: ARG002 - as above
    ) -> dp.PreStartContainerResponse:
        """Nothing: no recorded plugin asks for the call."""
        return dp.PreStartContainerResponse()

    @property
    def _rule(self) -> PreferredAllocation:
        return PreferredAllocation(self._entry["preferred_allocation"])


class _Plugins:
    """The plugins that are there, by resource."""

    def __init__(self) -> None:
        self._served: dict[str, tuple[RecordedPlugin, aio.Server]] = {}
        self._count = 0

    async def do(self, command: Json) -> None:
        match command["op"]:
            case "register":
                await self._register(command["entry"], Path(command["directory"]))
            case "list":
                self._served[command["entry"]["resource"]][0].change(command["entry"])
            case "end":
                await self._end(command["resource"])
            case "end-all":
                for resource in tuple(self._served):
                    await self._end(resource)
            case other:
                raise ValueError(f"unknown command {other}")

    async def _register(self, entry: Json, directory: Path) -> None:
        resource = entry["resource"]
        await self._end(resource)
        self._count += 1
        name = f"{self._count}.sock"
        plugin, server = RecordedPlugin(entry), aio.server()
        dp_grpc.add_DevicePluginServicer_to_server(plugin, server)
        server.add_insecure_port(f"unix:{directory / name}")
        await server.start()
        self._served[resource] = plugin, server
        async with aio.insecure_channel(f"unix:{directory / 'kubelet.sock'}") as channel:
            request = dp.RegisterRequest(version="v1beta1", endpoint=name, resource_name=resource)
            await dp_grpc.RegistrationStub(channel).Register(
                request, timeout=_REGISTER_SECONDS, wait_for_ready=True
            )

    async def _end(self, resource: str) -> None:
        _, server = self._served.pop(resource, (None, None))
        if server is not None:
            await server.stop(0)


def _device(entry: Json) -> dp.Device:
    nodes = entry["numa_nodes"]
    return dp.Device(
        ID=entry["id"],
        health="Healthy" if entry["healthy"] else "Unhealthy",
        topology=(
            None
            if nodes is None
            else dp.TopologyInfo(nodes=[dp.NUMANode(ID=node) for node in nodes])
        ),
    )


async def _run() -> None:
    plugins = _Plugins()
    reader = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while line := await reader.readline():
        answer = {}
        try:
            await plugins.do(json.loads(line))
        except (aio.AioRpcError, OSError, RuntimeError) as error:
            details = error.details() if isinstance(error, aio.AioRpcError) else str(error)
            answer = {"error": details}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    await plugins.do({"op": "end-all"})


if __name__ == "__main__":
    asyncio.run(_run())

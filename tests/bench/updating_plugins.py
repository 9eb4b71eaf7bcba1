"""Many device plugins in one process, which flip the health of devices when told to.

    python -m tests.bench.updating_plugins DIRECTORY

They register at the socket in DIRECTORY; a line on standard output says that they have. From
a line `on` on standard input to a line `off`, each of them sends its list once a second, with
another device that is not healthy; they take turns evenly.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from grpc import aio

from numalign.kube.deviceplugin.v1beta1 import api_pb2 as dp
from numalign.kube.deviceplugin.v1beta1 import api_pb2_grpc as dp_grpc

RESOURCES = 20
DEVICES = 25
NODES = 2


def resource_of(number: int) -> str:
    """The resource of one plugin; the first is that of the other benchmarks."""
    return "example.com/gpu" if number == 0 else f"example.com/r{number}"


class Plugin(dp_grpc.DevicePluginServicer):
    """25 devices on two NUMA nodes, of which one is not healthy after the first `flip`."""

    def __init__(self) -> None:
        self._sick = -1
        self._lists: list[asyncio.Queue[dp.ListAndWatchResponse]] = []

    def flip(self) -> None:
        """Send a list in which another device is not healthy."""
        self._sick = (self._sick + 1) % DEVICES
        for queue in self._lists:
            queue.put_nowait(self._list())

    async def GetDevicePluginOptions(self, request: Any, context: Any) -> dp.DevicePluginOptions:  # noqa: N802 - the interface's
        del request, context
        return dp.DevicePluginOptions()

    async def ListAndWatch(  # noqa: N802 - as above
        self, request: Any, context: Any
    ) -> AsyncIterator[dp.ListAndWatchResponse]:
        del request, context
        queue: asyncio.Queue[dp.ListAndWatchResponse] = asyncio.Queue()
        self._lists.append(queue)
        yield self._list()
        while True:
            yield await queue.get()

    async def Allocate(self, request: dp.AllocateRequest, context: Any) -> dp.AllocateResponse:  # noqa: N802 - as above
        del context
        responses = [dp.ContainerAllocateResponse() for _ in request.container_requests]
        return dp.AllocateResponse(container_responses=responses)

    async def GetPreferredAllocation(  # noqa: N802 - as above
        self, request: Any, context: Any
    ) -> dp.PreferredAllocationResponse:
        del request, context
        return dp.PreferredAllocationResponse()

    async def PreStartContainer(  # noqa: N802 - as above
        self, request: Any, context: Any
    ) -> dp.PreStartContainerResponse:
        del request, context
        return dp.PreStartContainerResponse()

    def _list(self) -> dp.ListAndWatchResponse:
        return dp.ListAndWatchResponse(
            devices=[
                dp.Device(
                    ID=f"d{number:02}",
                    health="Unhealthy" if number == self._sick else "Healthy",
                    topology=dp.TopologyInfo(nodes=[dp.NUMANode(ID=number % NODES)]),
                )
                for number in range(DEVICES)
            ]
        )


async def main(directory: Path) -> None:
    """Serve, register, and do as told until standard input ends."""
    plugins = [Plugin() for _ in range(RESOURCES)]
    servers = []
    async with aio.insecure_channel(f"unix:{directory / 'kubelet.sock'}") as channel:
        kubelet: dp_grpc.RegistrationAsyncStub = dp_grpc.RegistrationStub(channel)
        for number, plugin in enumerate(plugins):
            server = aio.server()
            dp_grpc.add_DevicePluginServicer_to_server(plugin, server)
            server.add_insecure_port(f"unix:{directory}/{number}.sock")
            await server.start()
            servers.append(server)
            await kubelet.Register(
                dp.RegisterRequest(
                    version="v1beta1",
                    endpoint=f"{number}.sock",
                    resource_name=resource_of(number),
                ),
                wait_for_ready=True,
            )
    sys.stdout.write("registered\n")
    sys.stdout.flush()
    updating = asyncio.Event()
    flipping = asyncio.create_task(_flip(plugins, updating))
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        updating.set() if line == "on" else updating.clear()
    flipping.cancel()
    await asyncio.gather(flipping, *(s.stop(0) for s in servers), return_exceptions=True)


async def _flip(plugins: list[Plugin], updating: asyncio.Event) -> None:
    while True:
        for plugin in plugins:
            await updating.wait()
            plugin.flip()
            await asyncio.sleep(1 / len(plugins))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))

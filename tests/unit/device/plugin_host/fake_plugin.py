"""A device plugin on a real socket that answers, hangs or fails as a test wants it to."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grpc import StatusCode, aio

from numalign.device.listing import Oddity
from numalign.device.plugin_host.changes import InventoryChange, Listed
from numalign.device.plugin_host.host import PluginHost
from numalign.device.plugin_host.strategies import SAFE, HostStrategies
from numalign.kube.deviceplugin.v1beta1 import api_pb2 as dp
from numalign.kube.deviceplugin.v1beta1 import api_pb2_grpc as dp_grpc
from numalign.kube.pluginregistration.v1 import api_pb2 as pr
from numalign.kube.pluginregistration.v1 import api_pb2_grpc as pr_grpc
from numalign.model.ids import PodUid

GPU = "example.com/gpu"
Context = aio.ServicerContext[Any, Any]
PATIENCE = 60.0


class Abort(Exception):
    """Raised by a behaviour to fail the call."""

    def __init__(self, code: StatusCode, details: str) -> None:
        super().__init__(details)
        self.code = code


async def hang() -> None:
    """Never answer."""
    await asyncio.Event().wait()


async def nothing() -> None:
    """Answer at once."""


@dataclass
class FakePlugin(dp_grpc.DevicePluginServicer, pr_grpc.RegistrationServicer):
    """What it answers; `before` runs before each answer, by method name."""

    options: dp.DevicePluginOptions = field(default_factory=dp.DevicePluginOptions)
    preferred: dp.PreferredAllocationResponse = field(
        default_factory=dp.PreferredAllocationResponse
    )
    allocated: dp.AllocateResponse = field(
        default_factory=lambda: dp.AllocateResponse(
            container_responses=[dp.ContainerAllocateResponse(envs={"A": "1"})]
        )
    )
    info: pr.PluginInfo = field(
        default_factory=lambda: pr.PluginInfo(
            type="DevicePlugin", name=GPU, supported_versions=["v1beta1"]
        )
    )
    before: dict[str, Callable[[], Awaitable[None]]] = field(default_factory=dict)
    asked: list[tuple[str, Any]] = field(default_factory=list)
    lists: list[asyncio.Queue[dp.ListAndWatchResponse | None]] = field(default_factory=list)
    last: dp.ListAndWatchResponse = field(default_factory=dp.ListAndWatchResponse)
    notified: list[pr.RegistrationStatus] = field(default_factory=list)

    def send(self, *ids: str) -> None:
        """Send a list of these devices to whoever listens, now and later."""
        self.last = dp.ListAndWatchResponse(
            devices=[dp.Device(ID=id_, health="Healthy") for id_ in ids]
        )
        for queue in self.lists:
            queue.put_nowait(self.last)

    def end_lists(self) -> None:
        """End the stream of whoever listens."""
        for queue in self.lists:
            queue.put_nowait(None)

    async def GetDevicePluginOptions(  # noqa: N802 - the contract's
        self, request: dp.Empty, context: Context
    ) -> dp.DevicePluginOptions:
        await self._asked("GetDevicePluginOptions", request, context)
        return self.options

    async def ListAndWatch(  # noqa: N802 - the contract's
        self, request: dp.Empty, context: Context
    ) -> AsyncIterator[dp.ListAndWatchResponse]:
        await self._asked("ListAndWatch", request, context)
        queue: asyncio.Queue[dp.ListAndWatchResponse | None] = asyncio.Queue()
        self.lists.append(queue)
        yield self.last
        while (message := await queue.get()) is not None:
            yield message

    async def GetPreferredAllocation(  # noqa: N802 - the contract's
        self, request: dp.PreferredAllocationRequest, context: Context
    ) -> dp.PreferredAllocationResponse:
        await self._asked("GetPreferredAllocation", request, context)
        return self.preferred

    async def Allocate(  # noqa: N802 - the contract's
        self, request: dp.AllocateRequest, context: Context
    ) -> dp.AllocateResponse:
        await self._asked("Allocate", request, context)
        return self.allocated

    async def PreStartContainer(  # noqa: N802 - the contract's
        self, request: dp.PreStartContainerRequest, context: Context
    ) -> dp.PreStartContainerResponse:
        await self._asked("PreStartContainer", request, context)
        return dp.PreStartContainerResponse()

    async def GetInfo(  # noqa: N802 - the contract's
        self, request: pr.InfoRequest, context: Context
    ) -> pr.PluginInfo:
        await self._asked("GetInfo", request, context)
        return self.info

    async def NotifyRegistrationStatus(  # noqa: N802 - the contract's
        self, request: pr.RegistrationStatus, context: Context
    ) -> pr.RegistrationStatusResponse:
        await self._asked("NotifyRegistrationStatus", request, context)
        self.notified.append(request)
        return pr.RegistrationStatusResponse()

    async def _asked(self, method: str, request: Any, context: Context) -> None:
        self.asked.append((method, request))
        try:
            await self.before.get(method, nothing)()
        except Abort as abort:
            await context.abort(abort.code, str(abort))


@asynccontextmanager
async def served(plugin: FakePlugin, socket: Path) -> AsyncIterator[aio.Server]:
    """The plugin, listening."""
    server = aio.server()
    dp_grpc.add_DevicePluginServicer_to_server(plugin, server)
    pr_grpc.add_RegistrationServicer_to_server(plugin, server)
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    try:
        yield server
    finally:
        await server.stop(0)


@dataclass
class Listener:
    """A host observer that remembers."""

    told: list[tuple[str, ...]] = field(default_factory=list)

    def asked_to_register(self, resource: str) -> None:
        self.told.append(("asked", resource))

    def refused(self, resource: str, why: str) -> None:
        self.told.append(("refused", resource, why))

    def connected(self, resource: str, socket: str) -> None:
        self.told.append(("connected", resource, Path(socket).name))

    def disconnected(self, resource: str, socket: str, why: str) -> None:
        self.told.append(("disconnected", resource, Path(socket).name, why))

    def odd_list(self, resource: str, oddities: Iterable[Oddity]) -> None:
        self.told.append(("odd", resource, *(oddity.what for oddity in oddities)))

    def health_changed(self, pods: frozenset[PodUid]) -> None:
        self.told.append(("health", *sorted(pods)))


@dataclass
class World:
    """A host, the directory of its plugins, and what it reports."""

    directory: Path
    host: PluginHost
    listener: Listener
    reported: list[InventoryChange]

    def listed(self) -> list[tuple[str, ...]]:
        """The ids of every list reported so far."""
        return [
            tuple(device.id for device in change.devices)
            for change in self.reported
            if isinstance(change, Listed)
        ]

    def kinds(self) -> list[str]:
        """What was reported, lists left out."""
        return [type(c).__name__ for c in self.reported if not isinstance(c, Listed)]


@asynccontextmanager
async def hosting(strategies: HostStrategies = SAFE, limit: float = 60.0) -> AsyncIterator[World]:
    """A host on a machine with NUMA nodes 0 and 1."""
    listener = Listener()
    reported: list[InventoryChange] = []
    host = PluginHost(
        nodes=(0, 1),
        strategies=strategies,
        timeout=limit,
        clock=lambda: 7.0,
        observer=listener,
    )
    host.report = reported.append
    with tempfile.TemporaryDirectory(prefix="na-") as directory:
        try:
            yield World(Path(directory), host, listener, reported)
        finally:
            await host.close()


async def until(condition: Callable[[], bool]) -> None:
    """Wait until `condition` holds."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - what is waited for is anything at all
            await asyncio.sleep(0.01)

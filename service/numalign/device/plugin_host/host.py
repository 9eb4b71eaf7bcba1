"""The plugins of a node: who serves which resource, and every call to them.

It is the `DevicePlugins` port over real sockets. Connecting, listening and disconnecting are
here; how a plugin came to be known (it registered, or was found) is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import aclosing
from pathlib import Path

from google.protobuf.message import DecodeError

from numalign.device.inventory import PluginOptions
from numalign.device.listing import Oddity
from numalign.device.plugin_host import texts, wire
from numalign.device.plugin_host.changes import (
    Disconnected,
    InventoryChange,
    Listed,
    Registered,
)
from numalign.device.plugin_host.client_table import ClientTable
from numalign.device.plugin_host.connection import ConnectError, PluginConnection
from numalign.device.plugin_host.newest import newest
from numalign.device.plugin_host.observer import HostObserver
from numalign.device.plugin_host.strategies import HostStrategies
from numalign.device.ports import PluginError
from numalign.model.ids import DeviceId
from numalign.provider.values import ContainerEdits
from numalign.telemetry.logs import get_logger

_log = get_logger("device-plugins")

LIST_PAUSE_SECONDS = 0.05
"""How long after one list the next one of the same plugin waits."""

_ENDED = "it ended its device list"


class PluginHost:
    """Connected plugins, by resource.

    `nodes` are the NUMA nodes of the machine; `timeout` is what an admission allows a
    provider, in seconds; `clock` gives seconds since the provider started; `report` takes
    what happens, in order.
    """

    has_effects = True

    def __init__(
        self,
        *,
        nodes: Collection[int],
        strategies: HostStrategies,
        timeout: float,
        clock: Callable[[], float],
        observer: HostObserver,
    ) -> None:
        self._nodes = frozenset(nodes)
        self._strategies = strategies
        self._timeout = timeout
        self._clock = clock
        self._observer = observer
        self._table: ClientTable[PluginConnection] = strategies.new_table()
        self._endpoints: dict[str, PluginConnection] = {}
        self._followers: dict[PluginConnection, asyncio.Task[None]] = {}
        self._closed = False
        self.report: Callable[[InventoryChange], None] = _nobody

    async def connect(self, resource: str, socket: Path) -> None:
        """Connect to the plugin at `socket` and follow its list (DEV-10).

        Raises ConnectError with the kubelet's text.
        """
        connection = PluginConnection(resource, socket, self._timeout)
        self._table.connecting(resource, connection)
        try:
            options = await self._opened(connection)
        except BaseException as error:
            self._table.failed(resource, connection)
            await connection.close()
            self._observer.refused(resource, str(error))
            raise
        replaced = self._table.connected(resource, connection)
        self._endpoints[resource] = connection
        self.report(Registered(resource, options))
        self._observer.connected(resource, str(socket))
        self._followers[connection] = asyncio.create_task(self._follow(connection))
        if replaced is not None:
            self._observer.disconnected(resource, str(replaced.socket), "another took its place")
            await self._leave(replaced)

    async def disconnect(self, resource: str, socket: Path) -> None:
        """The watched plugin at `socket` was taken away (DEV-8)."""
        gone = self._table.removed(resource, socket)
        if gone is not None:
            self._lost(gone, "its socket was removed")
            await self._leave(gone)

    async def close(self) -> None:
        """Disconnect every plugin (DEV-13)."""
        self._closed = True
        self._table.clear()
        followers = list(self._followers)
        for connection in {*followers, *self._endpoints.values()}:
            await self._leave(connection)

    async def get_preferred_allocation(
        self,
        resource: str,
        available: tuple[DeviceId, ...],
        must_include: tuple[DeviceId, ...],
        size: int,
    ) -> tuple[DeviceId, ...]:
        """The ids that the plugin would rather see taken. Raises PluginError."""
        plugin = self._plugin(resource)
        return await plugin.get_preferred_allocation(available, must_include, size)

    async def allocate(self, resource: str, ids: tuple[DeviceId, ...]) -> ContainerEdits:
        """What a container needs for `ids`. Raises PluginError."""
        return await self._plugin(resource).allocate(ids)

    async def pre_start_container(self, resource: str, ids: tuple[DeviceId, ...]) -> None:
        """Have the plugin make `ids` ready. Raises PluginError."""
        await self._plugin(resource).pre_start_container(ids)

    async def _opened(self, connection: PluginConnection) -> PluginOptions:
        options = await connection.open()
        if self._closed:
            raise ConnectError(texts.dial_failed("the device provider is stopping"))
        return options

    def _plugin(self, resource: str) -> PluginConnection:
        if resource not in self._endpoints:
            raise PluginError(texts.stopped(resource))
        return self._endpoints[resource]

    async def _follow(self, connection: PluginConnection) -> None:
        odd: frozenset[Oddity] = frozenset()
        why = _ENDED
        try:
            async with aclosing(newest(connection.lists(), LIST_PAUSE_SECONDS)) as lists:
                async for data in lists:
                    odd = self._listed(connection.resource, data, odd)
        except (PluginError, DecodeError) as error:
            why = str(error)
        except Exception as error:
            # Whatever it was, a plugin that nobody listens to must not count as connected.
            _log.exception("following a device plugin failed", resource=connection.resource)
            why = f"internal error: {error}"
        del self._followers[connection]
        gone = self._table.ended(connection.resource, connection)
        if gone is not None:
            self._lost(gone, why)
            if gone is not connection:
                await self._leave(gone)
        if gone is connection or self._endpoints.get(connection.resource) is not connection:
            await connection.close()

    def _listed(self, resource: str, data: bytes, before: frozenset[Oddity]) -> frozenset[Oddity]:
        listing = self._strategies.listed(wire.devices_from_bytes(data), self._nodes)
        odd = frozenset(listing.oddities)
        if odd - before:
            self._observer.odd_list(resource, sorted(odd - before))
        self.report(Listed(resource, listing.devices))
        return odd

    def _lost(self, connection: PluginConnection, why: str) -> None:
        self.report(Disconnected(connection.resource, self._clock()))
        self._observer.disconnected(connection.resource, str(connection.socket), why)

    async def _leave(self, connection: PluginConnection) -> None:
        follower = self._followers.pop(connection, None)
        if follower is not None:
            follower.cancel()
            await asyncio.gather(follower, return_exceptions=True)
        await connection.close()


def _nobody(change: InventoryChange) -> None:
    raise RuntimeError(f"nobody takes what plugins report yet: {change}")

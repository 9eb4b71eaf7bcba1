"""Deletes the ResourceSlices of drivers that are gone: nothing is to be allocated of them (DRA-10).

A driver publishes what it has and cannot take it back once it is gone. Its slices go 30 seconds
after its last plugin, and at the start those of drivers that do not come. It is tried until it is
done, and not, as by a kubelet, for four minutes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from grpc import aio

from numalign.rpc.channel import open_channel
from numalign.telemetry.logs import get_logger
from numalign.v1 import dynamic_resources_pb2 as dr
from numalign.v1 import dynamic_resources_pb2_grpc as dr_grpc
from numalign_agent.api import paths
from numalign_agent.api.errors import ApiError, Refused
from numalign_agent.api.server import ApiServer
from numalign_agent.claims.absent import AbsentDrivers
from numalign_agent.trouble import Troubles

LOOK_SECONDS = 5.0
_CALL_SECONDS = 5.0

_log = get_logger("claims")

ConnectedDrivers = Callable[[], Awaitable[frozenset[str] | None]]
"""The drivers of the node that answer; None where nobody can say."""


class ResourceSlices:
    """Looks after the slices of one node."""

    def __init__(
        self,
        server: ApiServer,
        node_name: str,
        connected: ConnectedDrivers,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = server
        self._node_name = node_name
        self._connected = connected
        self._clock = clock
        self._absent = AbsentDrivers()
        self._troubles = Troubles(_log)

    def problems(self) -> Mapping[str, str]:
        """Why slices of absent drivers are still there."""
        return self._troubles.current()

    async def run(self) -> None:
        """Look again and again until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Once: what is due is deleted; what could not be is tried at the next look."""
        connected = await self._connected()
        if connected is None:
            return
        now = self._clock()
        self._absent = self._absent.looked(connected, now)
        gone, everyone = self._absent.gone(now), self._absent.all_are_gone(now)
        if not gone and not everyone:
            return
        try:
            for driver, name, uid in await self._slices():
                if driver in gone or (everyone and driver not in connected):
                    await self._delete(driver, name, uid)
        except ApiError as error:
            self._troubles.say("resourceslices", str(error))
            return
        self._troubles.mended("resourceslices")
        self._absent = self._absent.wiped(gone, all_=everyone)

    async def _slices(self) -> list[tuple[str, str, str]]:
        """Driver, name and UID of every slice of this node."""
        query = {"fieldSelector": f"spec.nodeName={self._node_name}"}
        found = await self._server.get(paths.RESOURCE_SLICES, query)
        return [
            (item["spec"]["driver"], item["metadata"]["name"], item["metadata"]["uid"])
            for item in found.get("items") or ()
        ]

    async def _delete(self, driver: str, name: str, uid: str) -> None:
        try:
            await self._server.delete(paths.resource_slice(name), uid=uid, grace_seconds=0)
        except Refused as error:
            if not error.is_not_found and not error.is_conflict:
                raise
            # It is gone, or another one by now.
            return
        _log.info("deleted the slice of a driver that is gone", driver=driver, slice=name)


class DriverQuestion:
    """Asks the DRA service which drivers are connected."""

    def __init__(self, socket: Path) -> None:
        self._channel = open_channel(socket)
        self._stub = dr_grpc.DynamicResourcesStub(self._channel)

    async def connected(self) -> frozenset[str] | None:
        """See ConnectedDrivers."""
        try:
            answer = await self._stub.ListClaims(dr.ListClaimsRequest(), timeout=_CALL_SECONDS)
        except aio.AioRpcError as error:
            _log.debug("nobody says which drivers there are", error=error.details())
            return None
        return frozenset(driver.name for driver in answer.drivers if driver.connected)

    async def close(self) -> None:
        """Close the channel."""
        await self._channel.close()

"""One registration with the runtime: connected, made known, asked about everything there is.

The plugin has one that lasts, over which events come. Besides, each time that containers are
to be told something outside of an event, there is a short one, which hears no events and whose
only purpose is the answer to its Synchronize. The protocol has a call for that purpose,
UpdateContainers, but runtimes take two locks for it in the other order than for their events,
and stand still for good when both happen at once (containerd issue 13733). A registration
takes them in the right order.
"""

from __future__ import annotations

import asyncio
import os
from typing import Self

from numalign.kube.nri.v1alpha1 import api_pb2 as nri
from numalign.telemetry.logs import get_logger
from numalign_agent.nri.wire.answerer import Services
from numalign_agent.nri.wire.errors import CallFailed, Disconnected, ProtocolError
from numalign_agent.nri.wire.trunk import Trunk

RUNTIME_SERVICE = "nri.pkg.api.v1alpha1.Runtime"

_SECONDS = 5.0
"""What a runtime gives for a registration."""

_log = get_logger("nri")


class Registration:
    """A connection that the plugin has made known. `closed` is done when it has ended."""

    def __init__(self, trunk: Trunk) -> None:
        self._trunk = trunk
        self.closed = asyncio.create_task(trunk.run())

    @classmethod
    async def open(
        cls, path: str | os.PathLike[str], services: Services, name: str, index: str
    ) -> Self:
        """Connect and register. Raises Disconnected, and CallFailed if the runtime refuses."""
        registration = cls(await Trunk.connect(path, services))
        request = nri.RegisterPluginRequest(plugin_name=name, plugin_idx=index)
        try:
            await registration._trunk.call(
                RUNTIME_SERVICE, "RegisterPlugin", request.SerializeToString(), _SECONDS
            )
        except BaseException:
            await registration.close()
            raise
        return registration

    async def update(self, updates: list[nri.ContainerUpdate], seconds: float) -> tuple[str, ...]:
        """Have containers changed by UpdateContainers; the ids of those that failed.

        Raises Disconnected and CallFailed.
        """
        request = nri.UpdateContainersRequest(update=updates)
        payload = await self._trunk.call(
            RUNTIME_SERVICE, "UpdateContainers", request.SerializeToString(), seconds
        )
        response = nri.UpdateContainersResponse.FromString(payload)
        return tuple(update.container_id for update in response.failed)

    async def ended(self) -> None:
        """Wait until the runtime has closed the connection or broken the protocol."""
        try:
            await asyncio.shield(self.closed)
        except ProtocolError as error:
            _log.error("the runtime broke the protocol", error=str(error))

    async def close(self) -> None:
        """Close the connection."""
        await self._trunk.close()
        self.closed.cancel()
        await asyncio.gather(self.closed, return_exceptions=True)


class UpdateFailed(Exception):
    """The runtime could not be told; the text says why."""


async def told_by_registration(
    path: str | os.PathLike[str], services: Services, synchronized: asyncio.Event, index: str
) -> None:
    """Register for a moment: `services` answer its Synchronize, and set the event then.

    Raises UpdateFailed.
    """
    try:
        registration = await Registration.open(path, services, "numalign-updates", index)
    except (Disconnected, CallFailed) as error:
        raise UpdateFailed(str(error)) from error
    try:
        async with asyncio.timeout(_SECONDS):
            waiting = asyncio.create_task(synchronized.wait())
            try:
                await asyncio.wait(
                    {waiting, registration.closed}, return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                waiting.cancel()
        if not synchronized.is_set():
            raise UpdateFailed("the runtime closed the connection")
        # The answer is on its way; the runtime closes its side when it has read it.
        await asyncio.sleep(_AFTER_ANSWER)
    except TimeoutError:
        raise UpdateFailed(f"the runtime did not ask within {_SECONDS:g} s") from None
    finally:
        await registration.close()


_AFTER_ANSWER = 0.05

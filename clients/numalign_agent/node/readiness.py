"""Whether everything that a pod needs of numalign is there: each service, and the plugin."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from grpc import StatusCode
from grpc.aio import AioRpcError, Channel
from grpc_health.v1 import health_pb2, health_pb2_grpc

from numalign.config.health_names import HEALTH_NAMES
from numalign.config.settings import Service
from numalign.rpc.channel import open_channel

if TYPE_CHECKING:
    from aiohttp import ClientSession

RUNTIME = "runtime"
"""What the plugin of the container runtime is called beside the services."""

_SECONDS = 3.0
_LONGEST_REASON = 500

_SERVING = health_pb2.HealthCheckResponse.SERVING


class Readiness:
    """Asks the services at their sockets and, if there is one, the plugin at its page."""

    def __init__(self, sockets: Mapping[Service, Path], runtime_page: str = "") -> None:
        self._sockets = dict(sockets)
        self._channels: dict[Service, Channel] = {
            service: open_channel(socket) for service, socket in sockets.items()
        }
        self._runtime_page = runtime_page
        self._session: ClientSession | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        """Everything that is asked for."""
        services = tuple(service.value for service in self._sockets)
        return (*services, RUNTIME) if self._runtime_page else services

    async def missing(self) -> Mapping[str, str]:
        """What is not ready, and why; empty where all is well."""
        asked = [self._service(service) for service in self._sockets]
        if self._runtime_page:
            asked.append(self._runtime())
        answers = await asyncio.gather(*asked)
        return {part: why for part, why in zip(self.parts, answers, strict=True) if why is not None}

    async def close(self) -> None:
        """Close the connections."""
        for channel in self._channels.values():
            await channel.close()
        if self._session is not None:
            await self._session.close()

    async def _service(self, service: Service) -> str | None:
        request = health_pb2.HealthCheckRequest(service=HEALTH_NAMES[service])
        try:
            answer = await health_pb2_grpc.HealthStub(self._channels[service]).Check(
                request, timeout=_SECONDS
            )
        except AioRpcError as error:
            if error.code() is StatusCode.UNAVAILABLE:
                return f"nobody answers at {self._sockets[service]}"
            return f"{error.code().name}: {error.details()}"
        if answer.status == _SERVING:
            return None
        return str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))

    async def _runtime(self) -> str | None:
        from aiohttp import ClientError, ClientSession, ClientTimeout  # noqa: PLC0415

        if self._session is None:
            self._session = ClientSession(timeout=ClientTimeout(total=_SECONDS))
        try:
            async with self._session.get(self._runtime_page) as answer:
                if answer.ok:
                    return None
                text = await answer.text(errors="replace")
        except (ClientError, OSError, TimeoutError) as error:
            why = str(error) or type(error).__name__
            return f"the runtime's plugin does not answer at {self._runtime_page}: {why}"
        return " ".join(text.split())[:_LONGEST_REASON]

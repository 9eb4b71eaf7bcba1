"""One watched socket: who is there, and telling it whether it was taken in (DEV-9).

Separate from the watcher, which decides when to ask and what to say.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from grpc import aio

from numalign.errors import NumalignError
from numalign.kube.pluginregistration.v1 import api_pb2 as pr
from numalign.kube.pluginregistration.v1 import api_pb2_grpc as pr_grpc
from numalign.plugins.texts import rpc_error
from numalign.rpc.channel import socket_target

DIAL_SECONDS = 10.0
INFO_SECONDS = 1.0
NOTIFY_SECONDS = 5.0


class ProbeFailed(NumalignError):
    """The socket does not answer as a plugin does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A plugin as it describes itself; `endpoint` is where it serves."""

    type: str
    name: str
    endpoint: Path
    versions: tuple[str, ...]


class PluginProbe:
    """A connection to a watched socket; used as a context."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._channel = aio.insecure_channel(
            socket_target(socket),
            options=(
                ("grpc.default_authority", "localhost"),
                ("grpc.enable_http_proxy", 0),
                ("grpc.use_local_subchannel_pool", 1),
            ),
        )
        self._stub: pr_grpc.RegistrationAsyncStub = pr_grpc.RegistrationStub(self._channel)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self._channel.close()

    async def find(self) -> Found:
        """Who is there. Raises ProbeFailed."""
        try:
            async with asyncio.timeout(DIAL_SECONDS):
                await self._channel.channel_ready()
            info = await self._stub.GetInfo(pr.InfoRequest(), timeout=INFO_SECONDS)
        except TimeoutError as error:
            raise ProbeFailed(f"nobody answers within {DIAL_SECONDS:.0f} s") from error
        except aio.AioRpcError as error:
            raise ProbeFailed(rpc_error(error.code().name, error.details() or "")) from error
        return Found(
            type=info.type,
            name=info.name,
            endpoint=Path(info.endpoint) if info.endpoint else self._socket,
            versions=tuple(info.supported_versions),
        )

    async def notify(self, error: str | None) -> None:
        """Tell the plugin that it was taken in, or why not. Raises ProbeFailed."""
        status = pr.RegistrationStatus(plugin_registered=error is None, error=error or "")
        try:
            await self._stub.NotifyRegistrationStatus(status, timeout=NOTIFY_SECONDS)
        except aio.AioRpcError as failed:
            raise ProbeFailed(rpc_error(failed.code().name, failed.details() or "")) from failed

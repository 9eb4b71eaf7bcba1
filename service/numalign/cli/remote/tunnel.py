"""Sockets here that lead to the services of another node, each connection by an exec of its own.

gRPC connects to them as to the services' own sockets, so that every command works as it does on
the node. The first connection to each service is made before anybody asks, since gRPC waits but
a few seconds for the other side to speak.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from numalign.cli.endpoint import Endpoint
from numalign.cli.remote.failures import plain_failure
from numalign.cli.remote.greeting import Greeting, read_greeting
from numalign.cli.remote.kubectl import Kubectl
from numalign.cli.remote.link import Link
from numalign.cli.remote.pod import RemotePod
from numalign.cli.remote.target import RemoteNode
from numalign.config.settings import Service
from numalign.errors import Unavailable

_PIECE = 1 << 16
_LOOK_AGAIN_SECONDS = 0.1


@asynccontextmanager
async def tunnel_to(
    remote: RemoteNode, seconds: float, needed: Collection[Service] | None
) -> AsyncIterator[Mapping[Service, Endpoint]]:
    """Endpoints of the services on a node; `needed` are those that will be asked, None all.

    Raises NotFound and Unavailable where the node cannot be reached.
    """
    kubectl = Kubectl(remote.context, seconds)
    pod = await kubectl.pod_on(remote)
    with tempfile.TemporaryDirectory(prefix="numalign-") as name:
        tunnel = _Tunnel(kubectl, pod, Path(name), seconds)
        try:
            yield await tunnel.open(needed)
        finally:
            await tunnel.close()


class _Tunnel:
    """The connections to one pod."""

    def __init__(self, kubectl: Kubectl, pod: RemotePod, directory: Path, seconds: float) -> None:
        self._kubectl = kubectl
        self._pod = pod
        self._directory = directory
        self._seconds = seconds
        self._links: set[Link] = set()
        self._waiting: dict[Service, Link] = {}
        self._trouble = dict.fromkeys(Service, "")
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self, needed: Collection[Service] | None) -> Mapping[Service, Endpoint]:
        """Connect to the services that are needed, and listen for whoever asks."""
        first = next(iter(needed)) if needed else Service.ADMISSION
        greeting = await self._reserve(first)
        wanted = set(greeting.sockets if needed is None else needed) - {first}
        for outcome in await asyncio.gather(*map(self._reserve, wanted), return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
        endpoints = {}
        for service, there in greeting.sockets.items():
            path = self._directory / f"{service.value}.sock"
            server = await asyncio.start_unix_server(partial(self._accepted, service), path)
            self._servers.append(server)
            endpoints[service] = Endpoint(
                path=path,
                there=there,
                host=str(self._pod),
                trouble=partial(self._trouble.__getitem__, service),
            )
        return endpoints

    async def close(self) -> None:
        """End every connection."""
        for server in self._servers:
            server.close()
        for link in self._waiting.values():
            await self._end(link)
        # Who carries bytes ends when the other side does.
        while self._tasks:
            for link in self._links:
                link.kill()
            await asyncio.wait(self._tasks, timeout=_LOOK_AGAIN_SECONDS)

    async def _reserve(self, service: Service) -> Greeting:
        link, greeting = await self._connect(service)
        if greeting.error:
            self._trouble[service] = greeting.error
            await self._end(link)
        else:
            self._waiting[service] = link
        return greeting

    async def _connect(self, service: Service) -> tuple[Link, Greeting]:
        """A link to a service. Raises Unavailable."""
        command = ("numalign", "relay", service.value, *self._pod.place)
        link = await self._kubectl.link(self._pod, command)
        self._links.add(link)
        try:
            async with asyncio.timeout(self._seconds):
                line = await link.source.readline()
                if line:
                    return link, read_greeting(line)
                said = await link.last_words()
        except TimeoutError as error:
            await self._end(link)
            raise Unavailable(
                f"{self._pod}: no answer in time; give more with --timeout"
            ) from error
        except BaseException:
            await self._end(link)
            raise
        await self._end(link)
        raise Unavailable(f"{self._pod}: {plain_failure(said)}")

    async def _accepted(
        self, service: Service, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
        link = self._waiting.pop(service, None)
        try:
            if link is None:
                link, greeting = await self._connect(service)
                self._trouble[service] = greeting.error
                if greeting.error:
                    return
            there = asyncio.ensure_future(_pump(reader, link.sink))
            try:
                await _pump(link.source, writer)
            finally:
                there.cancel()
                await asyncio.gather(there, return_exceptions=True)
        except Unavailable as error:
            self._trouble[service] = str(error)
        finally:
            if link is not None:
                await self._end(link)
            writer.close()
            if task is not None:
                self._tasks.discard(task)

    async def _end(self, link: Link) -> None:
        self._links.discard(link)
        await link.end()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Carry bytes until one side closes."""
    with suppress(ConnectionError):
        while piece := await source.read(_PIECE):
            sink.write(piece)
            await sink.drain()

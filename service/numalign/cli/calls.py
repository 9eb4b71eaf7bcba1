"""Reaching the services: their sockets, channels to them, and calls that name who is missing."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Mapping,
)
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from grpc import StatusCode
from grpc.aio import AioRpcError, Channel

from numalign.cli.endpoint import Endpoint
from numalign.cli.options import Reach, current_reach, environment
from numalign.config.settings import CORE_SERVICES, Service
from numalign.errors import ConfigError, Unavailable
from numalign.rpc.channel import open_channel

T = TypeVar("T")


class Unreachable(Unavailable):
    """Nobody listens on a service's socket; `reason` is the system's word for it."""

    def __init__(self, service: Service, endpoint: Endpoint, reason: str) -> None:
        what = f"cannot reach the {service.value} service at {endpoint}"
        super().__init__(f"{what}: {reason} ({_remedy(endpoint, reason)})")
        self.reason = reason


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's calls to their end."""
    return asyncio.run(work)


def ask_services(work: Callable[[Mapping[Service, Endpoint]], Awaitable[T]], *needed: Service) -> T:
    """Run a command's calls to the services that it was told to reach, here or on another node.

    `needed` are those that will be called, all of them if none is named. Raises as `sockets_of`
    does, and NotFound or Unavailable where the other node cannot be reached.
    """

    async def whole() -> T:
        async with _services(current_reach(), needed or None) as endpoints:
            return await work(endpoints)

    return run(whole())


@asynccontextmanager
async def _services(
    reach: Reach, needed: Collection[Service] | None
) -> AsyncIterator[Mapping[Service, Endpoint]]:
    if reach.remote is None:
        yield sockets_of(reach)
        return
    from numalign.cli.remote.tunnel import tunnel_to  # noqa: PLC0415 - only for other nodes

    async with tunnel_to(reach.remote, reach.timeout, needed) as endpoints:
        yield endpoints


def sockets_of(reach: Reach) -> dict[Service, Endpoint]:
    """The socket of every service of this node.

    Named by `--socket` they lie beside the one of Admission; else by the configuration; else
    they are where numalign puts them by default. Raises ConfigError where that cannot be told.
    """
    if reach.socket is not None:
        socket = Path(str(reach.socket).removeprefix("unix://")).absolute()
        return {**_sockets_in(socket.parent), Service.ADMISSION: Endpoint(socket)}
    env, is_root = environment()
    if reach.config is not None:
        from numalign.config.loader import load_settings  # noqa: PLC0415 - reads YAML

        settings = load_settings(reach.config, env, is_root)
        return {service: Endpoint(settings.endpoints[service]) for service in settings.services}
    from numalign.config.defaults import default_directories  # noqa: PLC0415 - only here

    directory = default_directories(env, is_root).runtime
    if directory is None:
        raise ConfigError("--socket: must be given: neither HOME nor an XDG directory is set")
    return _sockets_in(directory)


def _sockets_in(directory: Path) -> dict[Service, Endpoint]:
    """Where services listen by default; one that not every node has, where its socket is there."""
    sockets = {service: directory / f"{service.value}.sock" for service in Service}
    # A directory that may not be looked into is told by those that have to be there.
    there = {s: p for s, p in sockets.items() if s in CORE_SERVICES or os.path.exists(p)}  # noqa: PTH110
    return {service: Endpoint(path) for service, path in there.items()}


@asynccontextmanager
async def channel_to(endpoint: Endpoint) -> AsyncGenerator[Channel]:
    """A channel to the service there, closed in the end."""
    channel = open_channel(endpoint.path)
    try:
        yield channel
    finally:
        await channel.close()


async def answer(service: Service, endpoint: Endpoint, call: Awaitable[T]) -> T:
    """Await a call. Raises Unreachable naming the service and its socket if nobody listens."""
    try:
        return await call
    except AioRpcError as error:
        reason = _why_unreachable(endpoint, error)
        if reason is None:
            raise
        raise Unreachable(service, endpoint, reason) from error


def _remedy(endpoint: Endpoint, reason: str) -> str:
    """What somebody can do whose connection failed for `reason`, the system's word."""
    socket = endpoint.path
    if endpoint.host:
        return "the log of its container may say why"
    if reason == os.strerror(errno.EACCES):
        return "who may connect is said by numalign.sockets in the services' configuration"
    try:
        is_other = not stat.S_ISSOCK(socket.stat().st_mode)
    except OSError:
        is_other = False
    if is_other:
        return "there is something that is no socket; --socket names another place"
    return 'is "numalign serve" running? --socket names another place'


def _why_unreachable(endpoint: Endpoint, error: AioRpcError) -> str | None:
    """Why no connection was made; None for a failure that the service itself reported."""
    if error.code() is not StatusCode.UNAVAILABLE:
        return None
    trouble = endpoint.trouble()
    details = error.details() or ""
    if trouble or not details.startswith("failed to connect"):
        return trouble or None
    return details.rpartition(": ")[2].partition(" (")[0]

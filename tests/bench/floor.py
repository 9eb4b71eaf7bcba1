"""The least that an admission can cost: the same calls and the same syncs, and nothing decided.

One process of the floor, started by name: `python -m tests.bench.floor NAME DIRECTORY`. Between
five of them go 1 + 1 + 3 (at once) + 3 (at once) unary calls with empty handlers; each of the
last three ends with a synced commit, and the second call with one. `one` stands alone: its
handler makes one synced commit.

The stack is the product's: grpc.aio with the same options, the same SQLite settings, the same
thread that writes. What the product adds is left out: its messages, its guards, its decisions.
"""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import grpc
from grpc import aio

from numalign.config.settings import LimitSettings
from numalign.rpc import channel, grpc_server
from numalign.rpc.channel import socket_target
from numalign.store.database import Database

SERVICE = "floor.Floor"
PROVIDERS = ("provider0", "provider1", "provider2")
FIVE = (*PROVIDERS, "topology", "admission")
ONE = "one"

Handler = Callable[[bytes, Any], Awaitable[bytes]]
Call = Callable[[bytes], Awaitable[bytes]]


def socket_of(directory: Path, name: str) -> Path:
    """The socket of one process of the floor."""
    return directory / f"{name}.sock"


def open_call(path: Path, method: str) -> Call:
    """A way to call a method of the process that listens at `path`."""
    opened = aio.insecure_channel(socket_target(path), options=channel._OPTIONS)
    return cast("Call", opened.unary_unary(f"/{SERVICE}/{method}"))


def _nothing() -> Handler:
    async def handle(request: bytes, context: Any) -> bytes:
        return b""

    return handle


def _committing(database: Database) -> Handler:
    def work(connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT INTO counters(name, value) VALUES ('floor', 1)"
            " ON CONFLICT DO UPDATE SET value = value + 1"
        )

    async def handle(request: bytes, context: Any) -> bytes:
        await database.write(work, synced=True)
        return b""

    return handle


def _handing_on(call: Call) -> Handler:
    async def handle(request: bytes, context: Any) -> bytes:
        return await call(b"")

    return handle


def _asking(hints: list[Call], allocations: list[Call], commit: Handler) -> Handler:
    async def handle(request: bytes, context: Any) -> bytes:
        await asyncio.gather(*(call(b"") for call in hints))
        await asyncio.gather(*(call(b"") for call in allocations))
        return await commit(request, context)

    return handle


def _handlers(name: str, directory: Path) -> dict[str, Handler]:
    if name == "admission":
        return {"Admit": _handing_on(open_call(socket_of(directory, "topology"), "Admit"))}
    database = Database.open(directory, name, report=print)
    commit = _committing(database)
    if name == "topology":
        paths = [socket_of(directory, provider) for provider in PROVIDERS]
        hints = [open_call(path, "Hints") for path in paths]
        allocations = [open_call(path, "Allocate") for path in paths]
        return {"Admit": _asking(hints, allocations, commit)}
    return {"Hints": _nothing(), "Allocate": commit, "Commit": commit}


async def _serve(name: str, directory: Path) -> None:
    handlers: dict[str, Any] = {
        method: grpc.unary_unary_rpc_method_handler(handler)
        for method, handler in _handlers(name, directory).items()
    }
    server = aio.server(options=grpc_server._options(LimitSettings()))
    server.add_registered_method_handlers(SERVICE, handlers)
    server.add_insecure_port(socket_target(socket_of(directory, name)))
    await server.start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    await server.stop(0)


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], Path(sys.argv[2])))

"""Whether all is ready: real health servers on sockets, and a real page of a plugin."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio

from numalign.config.health_names import HEALTH_NAMES
from numalign.config.settings import Service
from numalign_agent.node.readiness import RUNTIME, Readiness
from numalign_agent.web import WebPage

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture
def directory() -> Iterator[Path]:
    """Short, for sockets."""
    path = Path(tempfile.mkdtemp(prefix="rd-", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@asynccontextmanager
async def health(socket: Path, service: Service) -> AsyncIterator[health_aio.HealthServicer]:
    """A server that says how one service is."""
    server = grpc.aio.server()
    servicer = health_aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    server.add_insecure_port(f"unix:{socket}")
    await servicer.set(HEALTH_NAMES[service], SERVING)
    await server.start()
    try:
        yield servicer
    finally:
        await server.stop(0)


async def test_every_service_is_asked_for_itself(directory: Path) -> None:
    sockets = {service: directory / f"{service.value}.sock" for service in list(Service)[:2]}
    first, second = sockets
    async with health(sockets[first], first), health(sockets[second], second) as other:
        readiness = Readiness(sockets)
        well = await readiness.missing()
        await other.set(HEALTH_NAMES[second], NOT_SERVING)
        ill = await readiness.missing()
        await readiness.close()

    assert readiness.parts == (first.value, second.value)
    assert well == {}
    assert ill == {second.value: "NOT_SERVING"}


async def test_one_that_is_not_there_and_comes(directory: Path) -> None:
    socket = directory / "cpu.sock"
    readiness = Readiness({Service.CPU: socket})
    away = await readiness.missing()
    async with health(socket, Service.CPU):
        async with asyncio.timeout(60):
            while await readiness.missing():  # noqa: ASYNC110 - the channel tells nobody
                await asyncio.sleep(0.02)
    await readiness.close()

    assert away == {"cpu": f"nobody answers at {socket}"}


async def test_another_server_at_the_socket_is_not_the_service(directory: Path) -> None:
    socket = directory / "cpu.sock"
    async with health(socket, Service.ADMISSION):
        readiness = Readiness({Service.CPU: socket})
        missing = await readiness.missing()
        await readiness.close()

    assert missing["cpu"].startswith("NOT_FOUND")


async def test_the_runtimes_plugin() -> None:
    connected: list[str | None] = ["not connected yet to the runtime at /nri.sock"]
    page = WebPage.serve("127.0.0.1", 0, str, {}, {"runtime": lambda: connected[0]})
    address = f"http://127.0.0.1:{page.port}/readyz"
    readiness = Readiness({}, address)
    waits = await readiness.missing()
    connected[0] = None
    well = await readiness.missing()
    await page.close()
    gone = await readiness.missing()
    await readiness.close()

    assert readiness.parts == (RUNTIME,)
    assert waits == {
        RUNTIME: "[-]runtime failed: not connected yet to the runtime at /nri.sock "
        "readyz check failed"
    }
    assert well == {}
    assert gone[RUNTIME].startswith(f"the runtime's plugin does not answer at {address}: ")

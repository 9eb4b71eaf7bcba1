"""A served Echo, over a socket and inside the process."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.unit.rpc.echo import Echo, EchoStub, registration
from tests.unit.rpc.streams import UNARY, opened

from numalign.config.settings import SocketSettings
from numalign.rpc.channel import open_channel, open_local_channel
from numalign.rpc.local import LocalServer
from numalign.rpc.server import ServiceServer


@pytest.fixture
def run_directory() -> Iterator[Path]:
    """Short: a socket's path has at most 107 bytes."""
    directory = Path(tempfile.mkdtemp(prefix="na-"))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
async def echo() -> Echo:
    return Echo()


@pytest.fixture(params=["socket", "stream", "local"])
async def stub(
    request: pytest.FixtureRequest, echo: Echo, run_directory: Path
) -> AsyncIterator[EchoStub]:
    """The same service behind every kind of channel: what holds for one holds for the others."""
    if request.param == "local":
        local = LocalServer()
        local.add([registration(echo)])
        yield EchoStub(open_local_channel(local))
        return
    path = run_directory / "echo.sock"
    streams = request.param == "stream"
    server = ServiceServer([registration(echo)], path, SocketSettings(), call_streams=streams)
    await server.start()
    async with open_channel(path, carried=[UNARY] if streams else ()) as channel:
        stub = EchoStub(channel)
        if streams:
            await opened(channel, stub)
        yield stub
    await server.stop(0)

"""Signals: a real process that serves an Echo."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from grpc import StatusCode, aio
from tests.unit.rpc.echo import Echo, EchoStub, registration
from tests.waiting import LONG, until

from numalign.config.settings import SocketSettings
from numalign.errors import StartError
from numalign.rpc.channel import open_channel
from numalign.rpc.process import ServiceProcess
from numalign.rpc.server import ServiceServer

SCRIPT = """
import asyncio, pathlib, sys
from numalign.config.settings import SocketSettings
from numalign.errors import ConfigError
from numalign.rpc.process import ServiceProcess
from numalign.rpc.server import ServiceServer
from numalign.telemetry.logs import configure_logs
from tests.unit.rpc.echo import Echo, registration

outcomes = iter([None, ConfigError("bad setting"), ZeroDivisionError("bug"), None])

async def reload():
    outcome = next(outcomes)
    if outcome is not None:
        raise outcome
    print("reloaded", flush=True)

async def main():
    configure_logs("json", "info", sys.stdout)
    server = ServiceServer([registration(Echo())], pathlib.Path(sys.argv[1]), SocketSettings())
    process = ServiceProcess(
        [server],
        grace=float(sys.argv[2]),
        reload=reload,
        on_serving=lambda: print("serving", flush=True),
        on_stop=lambda: print("stopping", flush=True),
    )
    await process.run()
    print("ended", flush=True)

asyncio.run(main())
"""

ROOT = Path(__file__).parents[3]


class Child:
    """The process, its socket and a stub."""

    def __init__(self, process: asyncio.subprocess.Process, path: Path) -> None:
        self.process = process
        self.path = path
        self.channel = open_channel(path)
        self.stub = EchoStub(self.channel)

    async def line_with(self, text: str) -> str:
        assert self.process.stdout is not None
        while True:
            line = (await asyncio.wait_for(self.process.stdout.readline(), LONG)).decode()
            assert line, f"the process ended without {text!r}"
            if text in line:
                return line

    async def close(self) -> None:
        await self.channel.close()
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()


@pytest.fixture
async def child(request: pytest.FixtureRequest, run_directory: Path) -> AsyncIterator[Child]:
    path = run_directory / "s"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        SCRIPT,
        str(path),
        str(getattr(request, "param", 60)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    child = Child(process, path)
    await child.line_with("serving")
    yield child
    await child.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda n: n.name)
async def test_a_signal_stops_in_order(child: Child, number: signal.Signals) -> None:
    call = child.stub.Stream(b"short")
    assert await call.read() == b"first"
    child.process.send_signal(number)

    assert await call.read() == b"short"
    await child.line_with("stopping")
    await child.line_with("ended")
    assert await asyncio.wait_for(child.process.wait(), LONG) == 0
    assert not child.path.exists()


@pytest.mark.parametrize("child", [600], indirect=True)
async def test_a_second_signal_stops_at_once(child: Child) -> None:
    call = child.stub.Stream(b"sleep")
    assert await call.read() == b"first"
    child.process.terminate()
    await child.line_with("stopping")
    child.process.terminate()

    assert await asyncio.wait_for(child.process.wait(), LONG) == 0
    with pytest.raises((aio.AioRpcError, asyncio.CancelledError)):
        await call.read()


async def test_hang_up_reloads_and_bad_reloads_are_survived(child: Child) -> None:
    child.process.send_signal(signal.SIGHUP)
    await child.line_with("reloaded")
    child.process.send_signal(signal.SIGHUP)
    assert "bad setting" in await child.line_with("reload refused")
    child.process.send_signal(signal.SIGHUP)
    assert "ZeroDivisionError: bug" in await child.line_with("reload failed")
    child.process.send_signal(signal.SIGHUP)
    await child.line_with("reloaded")
    assert await child.stub.Unary(b"x") == b"x"


async def test_when_one_server_cannot_start_none_is_left(run_directory: Path) -> None:
    taken = ServiceServer([registration(Echo())], run_directory / "taken", SocketSettings())
    await taken.start()
    first = ServiceServer([registration(Echo())], run_directory / "first", SocketSettings())
    again = ServiceServer([registration(Echo())], run_directory / "taken", SocketSettings())
    with pytest.raises(StartError, match="another server answers there"):
        await ServiceProcess([first, again], grace=1).run()

    assert not (run_directory / "first").exists()
    async with open_channel(run_directory / "taken") as channel:
        assert await EchoStub(channel).Unary(b"x") == b"x"
    await taken.stop(0)


async def test_a_call_that_outlives_the_grace_period(run_directory: Path) -> None:
    echo = Echo()
    server = ServiceServer([registration(echo)], run_directory / "s", SocketSettings())
    serving = asyncio.Event()
    process = ServiceProcess([server], grace=0.1, on_serving=serving.set)
    running = asyncio.create_task(process.run())
    await serving.wait()
    async with open_channel(run_directory / "s") as channel:
        call = EchoStub(channel).Unary(b"sleep")
        await until(lambda: echo.sleeping)
        process.stop()
        await asyncio.wait_for(running, LONG)
        with pytest.raises((aio.AioRpcError, asyncio.CancelledError)) as caught:
            await call
        if isinstance(caught.value, aio.AioRpcError):
            assert caught.value.code() in {StatusCode.UNAVAILABLE, StatusCode.CANCELLED}

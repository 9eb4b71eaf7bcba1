"""What a caller may have at once, and how long it may take."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode, aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.unit.rpc.echo import Echo, EchoStub, registration
from tests.unit.rpc.raw_http2 import PREFACE, RawClient, begun_message, call_headers
from tests.waiting import answered, until

from numalign.config.settings import LimitSettings, SocketSettings
from numalign.rpc.channel import open_channel
from numalign.rpc.server import ServiceServer

SLACK = 60.0


@asynccontextmanager
async def serving(directory: Path, echo: Echo | None = None, **limits: Any) -> AsyncIterator[Path]:
    path = directory / "s"
    server = ServiceServer(
        [registration(echo or Echo())], path, SocketSettings(), limits=LimitSettings(**limits)
    )
    await server.start()
    try:
        yield path
    finally:
        await server.stop(0)


async def ends_with(call: Any) -> tuple[StatusCode, str]:
    with pytest.raises(aio.AioRpcError) as caught:
        await asyncio.wait_for(call, SLACK)
    return caught.value.code(), caught.value.details() or ""


async def still_serves(channel: aio.Channel) -> bool:
    """Whether others are answered; on a busy machine a request can be too late for short limits."""
    stub = EchoStub(channel)
    answer: bytes = await answered(lambda: stub.Unary(b"x"), StatusCode.DEADLINE_EXCEEDED)
    return answer == b"x"


@pytest.mark.parametrize("data", [b"", PREFACE[:10], PREFACE], ids=["silent", "half", "preface"])
async def test_a_connection_that_never_speaks_is_closed(run_directory: Path, data: bytes) -> None:
    async with serving(run_directory, handshake_timeout=0.3) as path:
        client = await RawClient.open(path)
        client.send(data)
        assert await client.closed(SLACK)
        await client.close()


@pytest.mark.parametrize("method", ["Unary", "Stream"])
async def test_a_request_that_never_comes_ends_the_call(run_directory: Path, method: str) -> None:
    async with serving(run_directory, request_timeout=0.2) as path, open_channel(path) as channel:
        call: Any = aio.insecure_channel(f"unix:{path}")
        silent = call.stream_unary(f"/test.Echo/{method}")()
        assert await ends_with(silent) == (
            StatusCode.DEADLINE_EXCEEDED,
            "the request did not arrive within 0.2 s",
        )
        assert await still_serves(channel)
        await call.close()


@pytest.mark.parametrize("method", ["Unary", "Stream", "Collect", "Chat"])
async def test_half_a_request_ends_its_stream_and_no_other(
    run_directory: Path, method: str
) -> None:
    async with serving(run_directory, request_timeout=0.2, stream_idle_timeout=0.2) as path:
        client = await RawClient.open(path)
        client.greet()
        client.send(call_headers(f"/test.Echo/{method}") + begun_message(100, 10))
        assert await client.stream_ended(1, SLACK)
        async with open_channel(path) as channel:
            assert await still_serves(channel)
        await client.close()


async def test_a_call_that_ends_without_a_request(run_directory: Path) -> None:
    async with serving(run_directory) as path:
        channel = aio.insecure_channel(f"unix:{path}")
        call: Any = channel.stream_unary("/test.Echo/Unary")()
        await call.done_writing()
        assert await ends_with(call) == (
            StatusCode.INVALID_ARGUMENT,
            "the call ended without a request",
        )
        await channel.close()


async def test_giving_up_before_the_request_is_no_fault(
    run_directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(run_directory) as path:
        for _ in range(20):
            client = await RawClient.open(path)
            client.greet()
            client.send(call_headers("/test.Echo/Unary"))
            await asyncio.sleep(0.02)
            await client.close()
        await asyncio.sleep(0.2)
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []


async def test_a_call_without_a_deadline_gets_one(run_directory: Path) -> None:
    echo = Echo()
    async with (
        serving(run_directory, echo, call_timeout=0.3) as path,
        open_channel(path) as channel,
    ):
        started = time.monotonic()
        assert await ends_with(EchoStub(channel).Unary(b"sleep")) == (
            StatusCode.DEADLINE_EXCEEDED,
            "the call took longer than 0.3 s",
        )
        assert time.monotonic() - started >= 0.3
        await asyncio.wait_for(echo.cancelled.wait(), SLACK)
        assert echo.seen["deadline"] is not None


async def test_an_earlier_deadline_stands_and_a_later_one_does_not(run_directory: Path) -> None:
    patient, hasty = run_directory / "patient", run_directory / "hasty"
    for directory in (patient, hasty):
        directory.mkdir()
    async with serving(patient, call_timeout=100) as path, open_channel(path) as channel:
        stub = EchoStub(channel)
        assert await stub.Unary(b"short", timeout=SLACK) == b"short"
        code, _ = await ends_with(stub.Unary(b"sleep", timeout=0.2))
        assert code is StatusCode.DEADLINE_EXCEEDED
    async with serving(hasty, call_timeout=0.3) as path, open_channel(path) as channel:
        _, details = await ends_with(EchoStub(channel).Unary(b"sleep", timeout=100))
        assert details == "the call took longer than 0.3 s"


async def test_a_watch_has_no_limit(run_directory: Path) -> None:
    async with (
        serving(
            run_directory, call_timeout=0.1, request_timeout=2, stream_idle_timeout=0.1
        ) as path,
        open_channel(path) as channel,
    ):
        stub = health_pb2_grpc.HealthStub(channel)

        async def begun() -> Any:
            watch: Any = stub.Watch(health_pb2.HealthCheckRequest())
            assert await watch.read() is not aio.EOF
            return watch

        watch = await answered(begun, StatusCode.DEADLINE_EXCEEDED)
        await asyncio.sleep(3.5)
        assert not watch.done()
        watch.cancel()


@pytest.mark.parametrize("method", ["Chat", "Collect"])
async def test_an_idle_stream_of_requests_is_ended(run_directory: Path, method: str) -> None:
    async with (
        serving(run_directory, stream_idle_timeout=3) as path,
        open_channel(path) as channel,
    ):
        stopping = asyncio.Event()

        async def requests() -> AsyncIterator[bytes]:
            for _ in range(4):
                yield b"short"
            await stopping.wait()

        call = getattr(EchoStub(channel), method)(requests())
        got: list[bytes] = []

        async def collect() -> None:
            if method == "Collect":
                await call
            while (response := await call.read()) is not aio.EOF:
                got.append(response)

        assert await ends_with(collect()) == (
            StatusCode.DEADLINE_EXCEEDED,
            "no further request came within 3 s",
        )
        assert got == ([] if method == "Collect" else [b"short"] * 4)
        stopping.set()


async def test_more_calls_than_allowed_are_refused(run_directory: Path) -> None:
    echo = Echo()
    async with (
        serving(run_directory, echo, calls=3) as path,
        open_channel(path) as first,
        open_channel(path) as second,
    ):
        running = [EchoStub(first).Unary(b"sleep") for _ in range(3)]
        await until(lambda: echo.sleeping == 3)
        code, _ = await ends_with(EchoStub(second).Unary(b"x"))
        assert code is StatusCode.RESOURCE_EXHAUSTED
        for call in running:
            call.cancel()
        stub = EchoStub(second)
        assert await answered(lambda: stub.Unary(b"x"), StatusCode.RESOURCE_EXHAUSTED) == b"x"


async def test_more_connections_than_allowed_are_closed(run_directory: Path) -> None:
    async with serving(run_directory, connections=2) as path:
        held = [await RawClient.open(path) for _ in range(2)]
        for client in held:
            client.greet()
            assert await client.receive() is not None
        third = await RawClient.open(path)
        third.greet()
        assert await third.closed(SLACK)
        for client in (*held, third):
            await client.close()
        async with open_channel(path) as channel:
            stub = EchoStub(channel)
            # Until the server has noticed that they are gone, it closes this one too.
            assert await answered(lambda: stub.Unary(b"x"), StatusCode.UNAVAILABLE) == b"x"


async def test_endless_metadata_is_refused(run_directory: Path) -> None:
    async with serving(run_directory) as path, open_channel(path) as channel:
        code, _ = await ends_with(EchoStub(channel).Unary(b"x", metadata=(("a", "x" * (1 << 18)),)))
        assert code in {StatusCode.RESOURCE_EXHAUSTED, StatusCode.INTERNAL}
        assert await EchoStub(channel).Unary(b"x") == b"x"


async def test_limits_outlive_a_failed_look(
    run_directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = 0

    def fail(_: ServiceServer) -> None:
        nonlocal looks
        looks += 1
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(ServiceServer, "_check_peers", fail)
    async with serving(run_directory, call_timeout=0.3) as path, open_channel(path) as channel:
        await until(lambda: looks >= 2)
        code, _ = await ends_with(EchoStub(channel).Unary(b"sleep"))

    assert code is StatusCode.DEADLINE_EXCEEDED
    assert "calls and peers cannot be checked" in capsys.readouterr().err

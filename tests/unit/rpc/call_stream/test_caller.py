"""When calls go over a stream, and what becomes of them when it breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode, aio
from tests.unit.rpc.echo import Echo, EchoStub, registration
from tests.unit.rpc.lateness import at_its_deadline
from tests.unit.rpc.streams import opened, stream_of, streaming_channel
from tests.waiting import until

from numalign.config.settings import SocketSettings
from numalign.rpc.channel import MESSAGE_BYTES
from numalign.rpc.server import ServiceServer

SLACK = 60.0


class Counting(Echo):
    """Knows what it was asked, and when it was asked both to sleep."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[bytes] = []
        self.both = asyncio.Event()

    async def behave(self, request: bytes, context: Any) -> bytes:
        self.asked.append(request)
        if {b"sleep", b"short"} <= set(self.asked):
            self.both.set()
        return await super().behave(request, context)


async def served(path: Path, echo: Echo, *, streams: bool = True) -> ServiceServer:
    server = ServiceServer([registration(echo)], path, SocketSettings(), call_streams=streams)
    await server.start()
    return server


@asynccontextmanager
async def connected(
    directory: Path, echo: Echo, *, streams: bool = True
) -> AsyncIterator[tuple[aio.Channel, EchoStub, ServiceServer]]:
    path = directory / "s"
    server = await served(path, echo, streams=streams)
    try:
        async with streaming_channel(path) as channel:
            yield channel, EchoStub(channel), server
    finally:
        await server.stop(0)


async def test_no_stream_until_one_is_wanted(run_directory: Path) -> None:
    async with connected(run_directory, Echo()) as (channel, stub, _):
        for _ in range(3):
            assert await stub.Unary(b"a") == b"a"
        assert not stream_of(channel).is_open


async def test_a_server_without_streams_is_called_call_by_call(run_directory: Path) -> None:
    async with connected(run_directory, Echo(), streams=False) as (channel, stub, _):
        stream_of(channel).want(True)
        for _ in range(5):
            assert await stub.Unary(b"a", timeout=SLACK) == b"a"
            await asyncio.sleep(0.01)
        assert not stream_of(channel).is_open


async def test_not_wanted_any_more(run_directory: Path) -> None:
    async with connected(run_directory, Echo()) as (channel, stub, _):
        stream = await opened(channel, stub)
        stream.want(False)
        assert await stub.Unary(b"a", timeout=SLACK) == b"a"
        assert not stream.is_open


async def test_a_call_in_flight_fails_with_the_stream_and_is_not_sent_again(
    run_directory: Path,
) -> None:
    echo = Counting()
    async with connected(run_directory, echo) as (channel, stub, server):
        stream = await opened(channel, stub)
        calls = [stub.Unary(request) for request in (b"sleep", b"short")]
        await asyncio.wait_for(echo.both.wait(), SLACK)
        await server.stop(0)
        for call in calls:
            with pytest.raises(aio.AioRpcError) as failed:
                await asyncio.wait_for(call, SLACK)
            assert failed.value.code() is StatusCode.UNAVAILABLE
        assert not stream.is_open
        assert [echo.asked.count(request) for request in (b"sleep", b"short")] == [1, 1]


async def test_a_server_that_comes_back_gets_a_stream_again(run_directory: Path) -> None:
    async with connected(run_directory, Echo()) as (channel, stub, server):
        stream = await opened(channel, stub)
        await server.stop(0)
        with pytest.raises(aio.AioRpcError) as failed:
            await stub.Unary(b"a")
        assert failed.value.code() is StatusCode.UNAVAILABLE
        again = await served(run_directory / "s", Echo())
        assert await stub.Unary(b"a", wait_for_ready=True, timeout=SLACK) == b"a"
        assert await opened(channel, stub) is stream
        await again.stop(0)


@pytest.mark.parametrize("how", ["cancelled", "late"])
async def test_a_call_that_is_given_up_leaves_the_others_alone(
    run_directory: Path, how: str
) -> None:
    echo = Echo()
    async with connected(run_directory, echo) as (channel, stub, _):
        await opened(channel, stub)
        other = stub.Unary(b"short")
        if how == "cancelled":
            call = asyncio.ensure_future(_awaited(stub.Unary(b"sleep")))
            await until(lambda: echo.sleeping)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        else:

            async def late(seconds: float) -> aio.AioRpcError:
                with pytest.raises(aio.AioRpcError) as failed:
                    await stub.Unary(b"sleep", timeout=seconds)
                return failed.value

            error = await at_its_deadline(echo, late)
            assert error.code() is StatusCode.DEADLINE_EXCEEDED
        await asyncio.wait_for(echo.cancelled.wait(), SLACK)
        assert await asyncio.wait_for(_awaited(other), SLACK) == b"short"


async def test_a_call_that_is_given_up_before_it_was_sent_is_not_sent(run_directory: Path) -> None:
    echo = Counting()
    async with connected(run_directory, echo) as (channel, stub, _):
        await opened(channel, stub)
        assert stub.Unary(b"never").cancel()
        assert await stub.Unary(b"a") == b"a"
        assert b"never" not in echo.asked


async def test_what_is_too_long_for_the_stream_is_called_by_itself(run_directory: Path) -> None:
    async with connected(run_directory, Echo()) as (channel, stub, _):
        stream = await opened(channel, stub)
        request = bytes(MESSAGE_BYTES - 8)
        assert await stub.Unary(request, timeout=SLACK) == request
        with pytest.raises(aio.AioRpcError) as failed:
            await stub.Unary(bytes(MESSAGE_BYTES + 1), timeout=SLACK)
        assert failed.value.code() is StatusCode.RESOURCE_EXHAUSTED
        assert stream.is_open
        assert await stub.Unary(b"a") == b"a"


async def test_many_calls_at_once_get_their_own_answers(run_directory: Path) -> None:
    async with connected(run_directory, Echo()) as (channel, stub, _):
        await opened(channel, stub)
        requests = [f"{number}".encode() * number for number in range(1, 200)]
        calls = [stub.Unary(request, timeout=SLACK) for request in requests]
        assert [await call for call in calls] == requests


async def test_closing_the_channel_ends_the_calls(run_directory: Path) -> None:
    async with connected(run_directory, Echo()) as (channel, stub, _):
        await opened(channel, stub)
        call = stub.Unary(b"sleep")
        await asyncio.sleep(0)
        await channel.close()
        with pytest.raises(aio.AioRpcError) as failed:
            await asyncio.wait_for(call, SLACK)
        assert failed.value.code() is StatusCode.UNAVAILABLE


async def _awaited(call: Any) -> Any:
    return await call

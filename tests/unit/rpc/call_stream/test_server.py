"""What a server does with the calls of a stream, and with streams that it cannot read."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode, aio
from tests.unit.rpc.echo import Echo, registration
from tests.unit.rpc.streams import UNARY

from numalign.config.settings import LimitSettings, SocketSettings
from numalign.rpc.call_stream.messages import PATH, call_message, give_up_message
from numalign.rpc.channel import MESSAGE_BYTES, socket_target
from numalign.rpc.server import ServiceServer
from numalign.v1 import call_stream_pb2 as cs

SLACK = 60.0


class Raw:
    """A stream without the caller's side: messages in, messages out."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    async def send(
        self, number: int, request: bytes, seconds: float | None = None, method: str = UNARY
    ) -> None:
        await self.stream.write(call_message(number, method, request, seconds, ()))

    async def next(self) -> cs.CarryResponse:
        data = await asyncio.wait_for(self.stream.read(), SLACK)
        assert data is not aio.EOF
        return cs.CarryResponse.FromString(data)

    async def ended(self) -> tuple[StatusCode, str]:
        code = await asyncio.wait_for(self.stream.code(), SLACK)
        return code, await self.stream.details() or ""


@asynccontextmanager
async def carried(
    directory: Path, echo: Echo | None = None, **limits: Any
) -> AsyncIterator[tuple[Raw, ServiceServer]]:
    path = directory / "s"
    server = ServiceServer(
        [registration(echo or Echo())],
        path,
        SocketSettings(),
        limits=LimitSettings(**limits),
        call_streams=True,
    )
    await server.start()
    try:
        async with aio.insecure_channel(socket_target(path)) as channel:
            call: Any = channel.stream_stream(PATH)
            raw = Raw(call())
            ready = await raw.next()
            assert ready == cs.CarryResponse()
            yield raw, server
    finally:
        await server.stop(0)


async def test_answers_come_as_they_are_ready(run_directory: Path) -> None:
    echo = Echo()
    async with carried(run_directory, echo) as (raw, _):
        await raw.send(1, b"held")
        await raw.send(2, b"at once")
        assert (await raw.next()).response == b"at once"
        echo.go.set()
        assert (await raw.next()).response == b"held"


async def test_a_call_that_is_given_up_ends_in_its_method(run_directory: Path) -> None:
    echo = Echo()
    async with carried(run_directory, echo) as (raw, _):
        await raw.send(1, b"sleep")
        await raw.send(2, b"next")
        assert (await raw.next()).id == 2
        await raw.stream.write(give_up_message(1))
        await asyncio.wait_for(echo.cancelled.wait(), SLACK)
        await raw.send(3, b"again")
        assert (await raw.next()).id == 3


@pytest.mark.parametrize(
    ("seconds", "limit", "text"),
    [
        (0.05, 60.0, "Deadline Exceeded"),
        (None, 0.05, "the call took longer than 0.05 s"),
        (30.0, 0.05, "the call took longer than 0.05 s"),
    ],
    ids=["the caller's", "the server's", "the earlier one"],
)
async def test_deadline(
    run_directory: Path, seconds: float | None, limit: float, text: str
) -> None:
    echo = Echo()
    async with carried(run_directory, echo, call_timeout=limit) as (raw, _):
        await raw.send(1, b"sleep", seconds)
        answer = await raw.next()
        assert (answer.id, answer.failure.code) == (1, StatusCode.DEADLINE_EXCEEDED.value[0])
        assert answer.failure.message == text
        assert echo.cancelled.is_set()


async def test_calls_beyond_the_limit_are_refused(run_directory: Path) -> None:
    async with carried(run_directory, calls=2) as (raw, _):
        for number in (1, 2, 3):
            await raw.send(number, b"sleep")
        refused = await raw.next()
        assert (refused.id, refused.failure.code) == (3, StatusCode.RESOURCE_EXHAUSTED.value[0])
        await raw.stream.write(give_up_message(1))
        await raw.send(4, b"now")
        while (answer := await raw.next()).HasField("failure"):
            await raw.send(4, b"now")
        assert answer.response == b"now"


async def test_a_method_that_is_not_there(run_directory: Path) -> None:
    async with carried(run_directory) as (raw, _):
        await raw.send(1, b"", method="/test.Echo/Stream")
        answer = await raw.next()
        assert answer.failure.code == StatusCode.UNIMPLEMENTED.value[0]


async def test_an_answer_that_is_too_long_fails_alone(run_directory: Path) -> None:
    class Long(Echo):
        async def behave(self, request: bytes, context: Any) -> bytes:
            return (
                bytes(MESSAGE_BYTES)
                if request == b"long"
                else await super().behave(request, context)
            )

    async with carried(run_directory, Long()) as (raw, _):
        await raw.send(1, b"long")
        answer = await raw.next()
        assert answer.failure.code == StatusCode.RESOURCE_EXHAUSTED.value[0]
        await raw.send(2, b"short")
        assert (await raw.next()).response == b"short"


@pytest.mark.parametrize(
    "data",
    [b"\xff", call_message(0, UNARY, b"", None, ())],
    ids=["no message", "no id"],
)
async def test_what_cannot_be_read_ends_the_stream(run_directory: Path, data: bytes) -> None:
    async with carried(run_directory) as (raw, _):
        await raw.stream.write(data)
        code, details = await raw.ended()
        assert code is StatusCode.INVALID_ARGUMENT
        assert details.startswith("the stream of calls cannot be read: ")


async def test_an_id_that_is_in_hand_ends_the_stream(run_directory: Path) -> None:
    async with carried(run_directory) as (raw, _):
        await raw.send(7, b"short")
        await raw.send(7, b"short")
        assert (await raw.next()).response == b"short"
        code, details = await raw.ended()
        assert (code, "id: 7" in details) == (StatusCode.INVALID_ARGUMENT, True)


async def test_a_stream_that_is_idle_stays_open(run_directory: Path) -> None:
    limits: dict[str, Any] = {
        "stream_idle_timeout": 0.05,
        "request_timeout": 0.05,
        "call_timeout": 0.05,
    }
    async with carried(run_directory, **limits) as (raw, server):
        server._clock.expire()
        await asyncio.sleep(0.2)
        server._clock.expire()
        # On a busy machine one call can take longer than this limit; the stream lives on.
        for number in itertools.count(1):
            await raw.send(number, b"still here")
            answer = await raw.next()
            if answer.failure.code != StatusCode.DEADLINE_EXCEEDED.value[0]:
                break
        assert answer.response == b"still here"


async def test_stopping_ends_an_idle_stream_at_once(run_directory: Path) -> None:
    async with carried(run_directory) as (raw, server):
        async with asyncio.timeout(SLACK):
            await server.stop(600)
        assert (await raw.ended())[0] is StatusCode.OK


async def test_stopping_waits_for_the_calls_in_hand(run_directory: Path) -> None:
    async with carried(run_directory) as (raw, server):
        await raw.send(1, b"short")
        await raw.send(2, b"first")
        assert (await raw.next()).id == 2
        stopping = asyncio.create_task(server.stop(600))
        assert (await raw.next()).response == b"short"
        async with asyncio.timeout(SLACK):
            await stopping
        assert (await raw.ended())[0] is StatusCode.OK


async def test_calls_end_with_their_stream(run_directory: Path) -> None:
    echo = Echo()
    async with carried(run_directory, echo) as (raw, _):
        await raw.send(1, b"sleep")
        await raw.send(2, b"first")
        assert (await raw.next()).id == 2
        raw.stream.cancel()
        await asyncio.wait_for(echo.cancelled.wait(), SLACK)

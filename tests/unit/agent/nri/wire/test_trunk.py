"""Calls both ways over a real socket, against a peer that shares no code with it."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from grpc import StatusCode
from tests.unit.agent.nri.go_framing import GoPeer, muxed, ttrpc

from numalign.kube.ttrpc.v1 import ttrpc_pb2
from numalign_agent.nri.wire.answerer import Services
from numalign_agent.nri.wire.errors import (
    CallFailed,
    Disconnected,
    MessageTooLong,
    ProtocolError,
    code_of,
)
from numalign_agent.nri.wire.trunk import Trunk
from numalign_agent.nri.wire.ttrpc_frames import LARGEST_DATA

PLUGIN = "nri.pkg.api.v1alpha1.Plugin"
RUNTIME = "nri.pkg.api.v1alpha1.Runtime"


async def echo(payload: bytes) -> bytes:
    return payload


async def refuse(_: bytes) -> bytes:
    raise CallFailed(StatusCode.FAILED_PRECONDITION, "TopologyAffinityError: no room")


async def hang(_: bytes) -> bytes:
    await asyncio.sleep(60)
    return b""


async def stumble(_: bytes) -> bytes:
    raise ZeroDivisionError("division by zero")


async def own_time_out(_: bytes) -> bytes:
    raise TimeoutError


async def grow(payload: bytes) -> bytes:
    return bytes(int(payload))


SERVICES: Services = {
    PLUGIN: {
        "Echo": echo,
        "Refuse": refuse,
        "Hang": hang,
        "Stumble": stumble,
        "OwnTimeOut": own_time_out,
        "Grow": grow,
    }
}


@asynccontextmanager
async def connected(services: Services = SERVICES) -> AsyncIterator[tuple[Trunk, GoPeer]]:
    ours, theirs = socket.socketpair()
    trunk = Trunk(*await asyncio.open_connection(sock=ours), services)
    peer = GoPeer(*await asyncio.open_connection(sock=theirs))
    running = asyncio.create_task(trunk.run())
    try:
        yield trunk, peer
    finally:
        await trunk.close()
        await peer.close()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("size", [0, 1, 4080, 4086, 4087, 5000, 100_000, LARGEST_DATA - 100])
async def test_both_ways_at_once(size: int) -> None:
    body = b"x" * size
    async with connected() as (trunk, peer):
        called = asyncio.create_task(trunk.call(RUNTIME, "Theirs", body, 60))
        answered = await peer.call("Echo", body, seconds=60)
        stream, request = await peer.calls.get()
        peer.answer(stream, request.payload)

        assert answered.payload == body
        assert await called == body
        assert (request.service, request.method) == (RUNTIME, "Theirs")
        assert request.timeout_nano == 60_000_000_000


async def test_streams_are_odd_and_ascend() -> None:
    async with connected() as (trunk, peer):
        calls = [asyncio.create_task(trunk.call(RUNTIME, "M", b"", 60)) for _ in range(3)]
        streams = [(await peer.calls.get())[0] for _ in calls]
        for stream in reversed(streams):
            peer.answer(stream, str(stream).encode())

        assert streams == [1, 3, 5]
        assert await asyncio.gather(*calls) == [b"1", b"3", b"5"]


@pytest.mark.parametrize(
    ("method", "code", "text"),
    [
        pytest.param(
            "Refuse",
            StatusCode.FAILED_PRECONDITION,
            "TopologyAffinityError: no room",
            id="refused",
        ),
        pytest.param(
            "Unheard", StatusCode.UNIMPLEMENTED, f"{PLUGIN}/Unheard is not", id="unknown-method"
        ),
        pytest.param("Stumble", StatusCode.INTERNAL, "Stumble: division by zero", id="fault"),
        pytest.param("OwnTimeOut", StatusCode.INTERNAL, "TimeoutError", id="fault-of-time"),
    ],
)
async def test_what_goes_wrong_is_a_status(method: str, code: StatusCode, text: str) -> None:
    async with connected() as (_, peer):
        answer = await peer.call(method, b"")
        still = await peer.call("Echo", b"still here")

        assert (code_of(answer.status.code), text in answer.status.message) == (code, True)
        assert still.payload == b"still here"


async def test_the_callers_time_limit_is_kept() -> None:
    async with connected() as (_, peer):
        answer = await peer.call("Hang", b"", timeout_nano=20_000_000)

        assert code_of(answer.status.code) is StatusCode.DEADLINE_EXCEEDED
        assert answer.status.message == "Hang: no answer within 0.02 s"


async def test_an_answer_that_is_too_long_is_refused() -> None:
    async with connected() as (_, peer):
        answer = await peer.call("Grow", str(LARGEST_DATA).encode(), seconds=60)

        assert code_of(answer.status.code) is StatusCode.RESOURCE_EXHAUSTED
        assert "at most 4194304 can be sent" in answer.status.message


@pytest.mark.parametrize(
    ("frame", "code", "text"),
    [
        pytest.param(ttrpc(2, 1, b""), StatusCode.INVALID_ARGUMENT, "stream 2", id="even-stream"),
        pytest.param(
            ttrpc(1, 3, b""), StatusCode.INVALID_ARGUMENT, "a frame of type 3", id="data-frame"
        ),
        pytest.param(
            ttrpc(1, 1, b"\xff\xff"), StatusCode.INVALID_ARGUMENT, "not those of", id="garbage"
        ),
        pytest.param(
            struct.pack(">IIBB", LARGEST_DATA + 1, 1, 1, 0) + bytes(LARGEST_DATA + 1),
            StatusCode.RESOURCE_EXHAUSTED,
            "more than 4194304 bytes",
            id="too-long",
        ),
    ],
)
async def test_a_bad_request_is_answered(frame: bytes, code: StatusCode, text: str) -> None:
    async with connected() as (_, peer):
        peer.writer.write(muxed(1, frame, 1 << 20))
        answer = await peer.answer_of(struct.unpack(">II", frame[:8])[1])
        still = await peer.call("Echo", b"still here")

        assert code_of(answer.status.code) is code
        assert text in answer.status.message
        assert still.payload == b"still here"


async def test_frames_one_byte_at_a_time() -> None:
    request = ttrpc_pb2.Request(service=PLUGIN, method="Echo", payload=b"p" * 50)
    async with connected() as (_, peer):
        for byte in muxed(1, ttrpc(1, 1, request.SerializeToString()), 7):
            peer.writer.write(bytes([byte]))
            await asyncio.sleep(0)

        assert (await peer.answer_of(1)).payload == b"p" * 50


async def test_a_connection_that_is_not_open_is_passed_over() -> None:
    async with connected() as (_, peer):
        peer.send(9, b"whatever")

        assert (await peer.call("Echo", b"here")).payload == b"here"


async def fails(call: Awaitable[bytes]) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        await call
    return caught.value


@pytest.mark.parametrize(
    ("answer", "code", "text"),
    [
        pytest.param(
            lambda peer, stream: peer.answer(stream, code=9, message="plugin name is empty"),
            StatusCode.FAILED_PRECONDITION,
            "plugin name is empty",
            id="status",
        ),
        pytest.param(
            lambda peer, stream: peer.answer(stream, code=99),
            StatusCode.UNKNOWN,
            "",
            id="status-of-no-name",
        ),
        pytest.param(
            lambda peer, stream: peer.send(2, ttrpc(stream, 2, b"\xff\xff")),
            StatusCode.INTERNAL,
            "no ttrpc response",
            id="garbage",
        ),
        pytest.param(
            lambda peer, stream: peer.send(2, ttrpc(stream, 3, b"")),
            StatusCode.INTERNAL,
            "type 3",
            id="data",
        ),
        pytest.param(
            lambda peer, stream: peer.writer.write(
                muxed(
                    2,
                    struct.pack(">IIBB", LARGEST_DATA + 1, stream, 2, 0) + bytes(LARGEST_DATA + 1),
                )
            ),
            StatusCode.RESOURCE_EXHAUSTED,
            "more than 4194304",
            id="too-long",
        ),
    ],
)
async def test_how_a_call_fails(
    answer: Callable[[GoPeer, int], None], code: StatusCode, text: str
) -> None:
    async with connected() as (trunk, peer):
        call = asyncio.create_task(fails(trunk.call(RUNTIME, "M", b"", 60)))
        stream, _ = await peer.calls.get()
        answer(peer, stream)
        failed = await call

        assert failed.code is code
        assert text in failed.message


async def test_a_call_that_is_not_answered_in_time() -> None:
    async with connected() as (trunk, peer):
        failed = await fails(trunk.call(RUNTIME, "Slow", b"", 0.02))
        stream, _ = await peer.calls.get()
        peer.answer(stream, b"too late")
        call = asyncio.create_task(trunk.call(RUNTIME, "Next", b"", 5))
        stream, _ = await peer.calls.get()
        peer.answer(stream, b"in time")

        assert failed.code is StatusCode.DEADLINE_EXCEEDED
        assert await call == b"in time"


async def test_a_call_that_is_too_long_is_not_sent() -> None:
    async with connected() as (trunk, peer):
        with pytest.raises(MessageTooLong):
            await trunk.call(RUNTIME, "M", bytes(LARGEST_DATA), 5)
        call = asyncio.create_task(trunk.call(RUNTIME, "Next", b"", 5))
        stream, _ = await peer.calls.get()
        peer.answer(stream, b"fine")

        assert await call == b"fine"


async def test_the_end_of_the_socket_ends_every_call() -> None:
    async with connected() as (trunk, peer):
        call = asyncio.create_task(trunk.call(RUNTIME, "M", b"", 60))
        await peer.calls.get()
        await peer.close()
        with pytest.raises(Disconnected, match="the runtime closed the socket"):
            await call
        with pytest.raises(Disconnected):
            await trunk.call(RUNTIME, "M", b"", 60)


async def test_broken_framing_ends_the_socket() -> None:
    ours, theirs = socket.socketpair()
    trunk = Trunk(*await asyncio.open_connection(sock=ours), SERVICES)
    peer = GoPeer(*await asyncio.open_connection(sock=theirs))
    running = asyncio.create_task(trunk.run())
    call = asyncio.create_task(trunk.call(RUNTIME, "M", b"", 60))
    await peer.calls.get()
    peer.writer.write(struct.pack(">II", 0, 1))
    with pytest.raises(ProtocolError):
        await running
    with pytest.raises(Disconnected, match="connection 0"):
        await call
    await peer.closed()
    await peer.close()


async def test_a_hanging_answer_does_not_outlive_the_socket() -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def method(_: bytes) -> bytes:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()
        return b""

    async with connected({PLUGIN: {"Method": method}}) as (_, peer):
        call = asyncio.create_task(peer.call("Method", b"", seconds=60))
        await begun.wait()
        await peer.close()
        async with asyncio.timeout(60):
            await cancelled.wait()
        call.cancel()


async def test_a_socket_that_is_not_there() -> None:
    with pytest.raises(Disconnected, match=r"/nowhere/nri\.sock: No such file or directory"):
        await Trunk.connect("/nowhere/nri.sock", SERVICES)

"""Calls end the same way over a socket and inside the process."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from grpc import StatusCode, aio
from tests.unit.rpc.echo import Echo, EchoStub, registration
from tests.unit.rpc.lateness import at_its_deadline
from tests.waiting import LONG, until

from numalign.errors import FieldViolation
from numalign.rpc.channel import open_local_channel
from numalign.rpc.deadline import current_deadline, remaining, within
from numalign.rpc.local import LocalServer
from numalign.rpc.status import violations_of
from numalign.telemetry.trace_context import TraceContext, current_trace

TRACE = TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "vendor=1")

ENDINGS = [
    pytest.param(b"abort", StatusCode.ABORTED, "no", id="abort"),
    pytest.param(b"invalid", StatusCode.INVALID_ARGUMENT, "pod.name: Required value", id="ours"),
    pytest.param(
        b"bug", StatusCode.INTERNAL, "internal error: ZeroDivisionError: oops", id="unexpected"
    ),
    pytest.param(b"timeout", StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded", id="timeout"),
    pytest.param(b"code", StatusCode.NOT_FOUND, "set", id="set-code"),
]


async def failure(call: Any) -> aio.AioRpcError:
    with pytest.raises(aio.AioRpcError) as caught:
        await call
    return caught.value


async def drain(stream: Any, into: list[bytes]) -> None:
    async for response in stream:
        into.append(response)  # noqa: PERF401  what came before an error counts


async def source(*items: bytes) -> AsyncIterator[bytes]:
    for item in items:
        await asyncio.sleep(0)
        yield item


async def test_a_unary_call(stub: EchoStub) -> None:
    call = stub.Unary(b"x")
    assert await call == b"x"
    assert await call == b"x"
    assert call.done()
    assert not call.cancelled()
    assert not call.cancel()
    assert await call.code() is StatusCode.OK
    assert await call.details() == ""


@pytest.mark.parametrize(("request_", "code", "details"), ENDINGS)
async def test_how_a_unary_call_fails(
    stub: EchoStub, request_: bytes, code: StatusCode, details: str
) -> None:
    call = stub.Unary(request_)
    error = await failure(call)

    assert (error.code(), error.details()) == (code, details)
    assert await call.code() is code
    assert await call.details() == details
    assert (await failure(call)).code() is code


@pytest.mark.parametrize(("request_", "code", "details"), ENDINGS)
async def test_how_a_stream_of_responses_fails(
    stub: EchoStub, request_: bytes, code: StatusCode, details: str
) -> None:
    call = stub.Stream(request_)
    seen: list[bytes] = []
    error = await failure(drain(call, seen))

    assert seen[0] == b"first"
    assert (error.code(), error.details()) == (code, details)
    assert await call.code() is code


@pytest.mark.parametrize(("request_", "code", "details"), ENDINGS)
async def test_how_a_stream_of_requests_fails(
    stub: EchoStub, request_: bytes, code: StatusCode, details: str
) -> None:
    error = await failure(stub.Collect(source(b"a", request_)))
    assert (error.code(), error.details()) == (code, details)


async def test_trailing_metadata(stub: EchoStub) -> None:
    error = await failure(stub.Unary(b"abort"))
    assert dict(error.trailing_metadata() or ()) == {"key": "value"}
    error = await failure(stub.Unary(b"invalid"))
    assert violations_of(error) == (FieldViolation("pod.name", "Required value"),)


async def test_an_unexpected_error_is_logged_with_its_traceback(
    stub: EchoStub, capsys: pytest.CaptureFixture[str]
) -> None:
    await failure(stub.Unary(b"bug"))
    logged = capsys.readouterr()
    text = logged.out + logged.err

    assert "ZeroDivisionError: oops" in text
    assert "call failed" in text
    assert "/test.Echo/Unary" in text
    await failure(stub.Unary(b"invalid"))
    await failure(stub.Unary(b"abort"))
    assert capsys.readouterr() == ("", "")


async def test_a_method_that_is_not_served(stub: EchoStub) -> None:
    error = await failure(stub.Missing(b"x"))
    assert (error.code(), error.details()) == (StatusCode.UNIMPLEMENTED, "Method not found!")


@pytest.mark.parametrize("kind", ["iterator", "list", "writes"])
async def test_requests_can_be_given_in_every_way(stub: EchoStub, kind: str) -> None:
    if kind == "writes":
        call = stub.Collect()
        for item in (b"a", b"b"):
            await call.write(item)
        await call.done_writing()
    else:
        call = stub.Collect(source(b"a", b"b") if kind == "iterator" else iter([b"a", b"b"]))
    assert await call == b"a,b"


async def test_both_directions_at_once(stub: EchoStub) -> None:
    call = stub.Chat()
    for item in (b"1", b"2", b"3"):
        await call.write(item)
        assert await call.read() == item
    await call.done_writing()
    assert await call.read() is aio.EOF
    assert await call.code() is StatusCode.OK


async def test_a_long_stream_is_complete_and_in_order(stub: EchoStub) -> None:
    items = [str(n).encode() for n in range(300)]
    seen: list[bytes] = []
    await drain(stub.Chat(source(*items)), seen)
    assert seen == items


async def test_a_deadline_ends_the_call_on_both_sides(stub: EchoStub, echo: Echo) -> None:
    started = time.monotonic()
    error = await at_its_deadline(
        echo, lambda seconds: failure(stub.Unary(b"sleep", timeout=seconds))
    )

    assert error.code() is StatusCode.DEADLINE_EXCEEDED
    assert time.monotonic() - started > 0.05
    await asyncio.wait_for(echo.cancelled.wait(), LONG)


async def test_a_deadline_leaves_the_calling_task_alone(stub: EchoStub) -> None:
    async def caller() -> int:
        error = await failure(stub.Unary(b"sleep", timeout=0.05))
        assert error.code() is StatusCode.DEADLINE_EXCEEDED
        await asyncio.sleep(0.01)
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    assert await asyncio.create_task(caller()) == 0


async def test_a_task_cancelled_at_its_deadline_stays_cancelled(stub: EchoStub) -> None:
    async def caller() -> None:
        await stub.Unary(b"sleep", timeout=30)

    task = asyncio.create_task(caller())
    await asyncio.sleep(0.05)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(task, 0.01)
    assert task.cancelled()


async def test_a_deadline_ends_a_stream(stub: EchoStub, echo: Echo) -> None:
    seen: list[bytes] = []

    async def ended(seconds: float) -> aio.AioRpcError:
        seen.clear()
        return await failure(drain(stub.Stream(b"sleep", timeout=seconds), seen))

    error = await at_its_deadline(echo, ended, lambda: bool(seen))
    assert error.code() is StatusCode.DEADLINE_EXCEEDED
    assert seen == [b"first"]
    await asyncio.wait_for(echo.cancelled.wait(), LONG)


async def test_no_time_at_all(stub: EchoStub) -> None:
    assert (await failure(stub.Unary(b"sleep", timeout=0))).code() is StatusCode.DEADLINE_EXCEEDED


async def test_cancelling_the_task_cancels_the_call(stub: EchoStub, echo: Echo) -> None:
    async def caller() -> None:
        await stub.Unary(b"sleep")

    task = asyncio.create_task(caller())
    await until(lambda: echo.sleeping)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(echo.cancelled.wait(), LONG)


@pytest.mark.parametrize("later", [False, True], ids=["at-once", "later"])
async def test_cancelling_the_call_itself(stub: EchoStub, echo: Echo, later: bool) -> None:
    call = stub.Unary(b"sleep")
    if later:
        await until(lambda: echo.sleeping)
    assert call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert call.cancelled()
    assert await call.code() is StatusCode.CANCELLED
    assert await call.details() == "Locally cancelled by application!"


async def test_cancelling_a_call_that_another_task_awaits(stub: EchoStub, echo: Echo) -> None:
    call = stub.Unary(b"sleep")
    waiting = asyncio.ensure_future(call)
    await until(lambda: echo.sleeping)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.wait_for(echo.cancelled.wait(), LONG)


async def test_cancelling_a_stream(stub: EchoStub, echo: Echo) -> None:
    call = stub.Stream(b"sleep")
    assert await call.read() == b"first"
    await until(lambda: echo.sleeping)
    assert call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call.read()
    assert call.cancelled()
    await asyncio.wait_for(echo.cancelled.wait(), LONG)


async def test_a_local_stream_that_is_dropped_is_cancelled(echo: Echo) -> None:
    server = LocalServer()
    server.add([registration(echo)])
    stub = EchoStub(open_local_channel(server))
    call = stub.Stream(b"sleep")
    assert await call.read() == b"first"
    await until(lambda: echo.sleeping)
    del call
    gc.collect()
    await asyncio.wait_for(echo.cancelled.wait(), LONG)


async def test_a_call_that_nobody_awaits_is_made(stub: EchoStub, echo: Echo) -> None:
    call = stub.Unary(b"x")
    await until(call.done)
    assert "metadata" in echo.seen
    assert await call == b"x"


async def test_calls_run_at_the_same_time(stub: EchoStub, echo: Echo) -> None:
    calls = [stub.Unary(b"sleep") for _ in range(10)]
    await until(lambda: echo.sleeping == 10)
    for call in calls:
        assert call.cancel()
    results = await asyncio.gather(*(stub.Unary(b"short") for _ in range(10)))
    assert results == [b"short"] * 10


async def test_done_callbacks(stub: EchoStub) -> None:
    ended: list[Any] = []
    for request in (b"x", b"abort"):
        call = stub.Unary(request)
        call.add_done_callback(ended.append)
        await asyncio.wait((asyncio.ensure_future(call),))
        call.add_done_callback(ended.append)
    stream = stub.Stream(b"x")
    stream.add_done_callback(ended.append)
    await drain(stream, [])
    await until(lambda: len(ended) == 5)


async def test_metadata_and_deadline_arrive(stub: EchoStub, echo: Echo) -> None:
    # A server gives no call more than a minute, and a busy machine takes some of it.
    await stub.Unary(b"x", timeout=50, metadata=(("a", "b"),))
    assert echo.seen["metadata"]["a"] == "b"
    assert 10 < echo.seen["remaining"] <= 50.1
    assert 10 < echo.seen["deadline"] - asyncio.get_running_loop().time() <= 50.1
    await stub.Unary(b"x")
    assert echo.seen["remaining"] is None
    # A server gives a call without a deadline its own; inside the process there is none.
    if echo.seen["deadline"] is not None:
        assert 10 < echo.seen["deadline"] - asyncio.get_running_loop().time() <= 60
    assert current_deadline.get() is None


async def test_the_incoming_deadline_is_inherited(stub: EchoStub, echo: Echo) -> None:
    token = current_deadline.set(asyncio.get_running_loop().time() + 300)
    await stub.Unary(b"x")
    # gRPC rounds what it sends up.
    assert 200 < echo.seen["remaining"] <= 303
    await stub.Unary(b"x", timeout=100)
    assert 0 < echo.seen["remaining"] <= 101
    await stub.Unary(b"x", timeout=1000)
    assert 200 < echo.seen["remaining"] <= 303
    current_deadline.reset(token)


async def test_the_trace_is_passed_on(stub: EchoStub, echo: Echo) -> None:
    await stub.Unary(b"x")
    assert echo.seen.get("trace") is None
    token = current_trace.set(TRACE)
    await stub.Unary(b"x")
    current_trace.reset(token)
    assert echo.seen["trace"] == TRACE
    assert echo.seen["metadata"]["traceparent"] == TRACE.traceparent
    assert echo.seen["metadata"]["tracestate"] == TRACE.tracestate


async def test_helpers_for_deadlines() -> None:
    assert remaining() is None
    assert within(None) is None
    assert within(2) == 2
    token = current_deadline.set(asyncio.get_running_loop().time() - 1)
    assert remaining() == 0
    assert within(None) == 0
    current_deadline.reset(token)

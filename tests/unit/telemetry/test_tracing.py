"""Spans for every way a call can end, as a collector receives them."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from grpc import aio
from tests.unit.rpc.echo import Echo, EchoStub, registration
from tests.unit.rpc.lateness import at_its_deadline
from tests.unit.telemetry.otlp import Receiver, attributes
from tests.waiting import until

from numalign.config.settings import SocketSettings
from numalign.errors import ConfigError
from numalign.rpc.channel import open_channel, open_local_channel, spans_ended
from numalign.rpc.context import Context
from numalign.rpc.local import LocalServer
from numalign.rpc.server import ServiceServer
from numalign.telemetry.trace_context import TraceContext, current_trace
from numalign.telemetry.tracing import (
    active_tracer,
    span,
    start_tracing,
    stop_tracing,
    wants_tracing,
)

OK, CANCELLED, UNKNOWN, INVALID, DEADLINE, NOT_FOUND, ABORTED, INTERNAL = 0, 1, 2, 3, 4, 5, 10, 13
UNSET, ERROR = 0, 2
SERVER, CLIENT, INNER = 2, 3, 1


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with Receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint}
        assert start_tracing("numalign-test", environ)
        yield receiver
        stop_tracing()


class Relay(Echo):
    """Passes on what it is asked, inside of a step of its own."""

    def __init__(self, behind: EchoStub) -> None:
        super().__init__()
        self._behind = behind

    async def Unary(self, request: bytes, _: Context) -> bytes:  # noqa: N802
        with span("step", size=len(request)):
            answer: bytes = await self._behind.Unary(request)
            return answer


@dataclass
class Traced:
    """An Echo behind one hop, and a Relay in front of it."""

    echo: Echo
    stub: EchoStub
    relay: EchoStub
    receiver: Receiver

    async def spans(self) -> dict[int, Any]:
        """What was exported, by kind; for a single hop, of which both sides have ended."""
        await until(lambda: {s.kind for s in self.receiver.spans()} >= {SERVER, CLIENT})
        return {s.kind: s for s in await self.all_spans()}

    async def all_spans(self, count: int = 0) -> list[Any]:
        """What was exported, once there are so many."""
        await until(lambda: len(self.receiver.spans()) >= count)
        await spans_ended()
        await asyncio.to_thread(stop_tracing)
        return self.receiver.spans()


@pytest.fixture(params=["socket", "local"])
async def traced(request: pytest.FixtureRequest, receiver: Receiver) -> AsyncIterator[Traced]:
    tracer = active_tracer()
    echo = Echo()
    if request.param == "local":
        local = LocalServer(tracer)
        local.add([registration(echo)])
        stub = EchoStub(open_local_channel(local, tracer))
        local.add([registration(Relay(stub), service="test.Relay")])
        relay = EchoStub(open_local_channel(local, tracer), "test.Relay")
        yield Traced(echo, stub, relay, receiver)
        return
    directory = Path(tempfile.mkdtemp(prefix="na-"))
    first = ServiceServer([registration(echo)], directory / "a", SocketSettings(), tracer)
    await first.start()
    channel = open_channel(directory / "a", tracer)
    stub = EchoStub(channel)
    relaying = registration(Relay(stub), service="test.Relay")
    second = ServiceServer([relaying], directory / "b", SocketSettings(), tracer)
    await second.start()
    front = open_channel(directory / "b", tracer)
    yield Traced(echo, stub, EchoStub(front, "test.Relay"), receiver)
    await front.close()
    await channel.close()
    await second.stop(0)
    await first.stop(0)
    await asyncio.to_thread(shutil.rmtree, directory)


async def end(call: Any) -> None:
    try:
        await call
    except (aio.AioRpcError, asyncio.CancelledError):
        return


async def drain(stream: Any) -> None:
    async for _ in stream:
        pass


ENDINGS = [
    pytest.param(b"x", OK, UNSET, UNSET, "", id="ok"),
    pytest.param(b"abort", ABORTED, ERROR, UNSET, "ABORTED: no", id="abort"),
    pytest.param(
        b"invalid", INVALID, ERROR, UNSET, "INVALID_ARGUMENT: pod.name: Required value", id="ours"
    ),
    pytest.param(
        b"bug",
        INTERNAL,
        ERROR,
        ERROR,
        "INTERNAL: internal error: ZeroDivisionError: oops",
        id="unexpected",
    ),
    pytest.param(
        b"timeout", DEADLINE, ERROR, ERROR, "DEADLINE_EXCEEDED: Deadline Exceeded", id="timeout"
    ),
    pytest.param(b"code", NOT_FOUND, ERROR, UNSET, "NOT_FOUND: set", id="set-code"),
]

SHAPES: list[Any] = [
    pytest.param(lambda stub, request: stub.Unary(request), "Unary", id="unary"),
    pytest.param(lambda stub, request: drain(stub.Stream(request)), "Stream", id="stream"),
    pytest.param(lambda stub, request: stub.Collect(iter([request])), "Collect", id="collect"),
    pytest.param(lambda stub, request: drain(stub.Chat(iter([request]))), "Chat", id="chat"),
]


@pytest.mark.parametrize(("call", "method"), SHAPES)
@pytest.mark.parametrize(("request_", "code", "client", "server", "text"), ENDINGS)
async def test_how_a_call_ended(
    traced: Traced,
    call: Callable[[EchoStub, bytes], Any],
    method: str,
    request_: bytes,
    code: int,
    client: int,
    server: int,
    text: str,
) -> None:
    await end(call(traced.stub, request_))
    spans = await traced.spans()

    assert set(spans) == {SERVER, CLIENT}
    for kind, status in ((CLIENT, client), (SERVER, server)):
        found = spans[kind]
        assert found.name == f"test.Echo/{method}"
        assert attributes(found) == {
            "rpc.system": "grpc",
            "rpc.service": "test.Echo",
            "rpc.method": method,
            "rpc.grpc.status_code": code,
        }
        assert found.status.code == status
        assert found.status.message == (text if status == ERROR else "")
        assert found.end_time_unix_nano >= found.start_time_unix_nano
    assert spans[SERVER].parent_span_id == spans[CLIENT].span_id
    assert spans[SERVER].trace_id == spans[CLIENT].trace_id


async def codes(traced: Traced) -> dict[int, Any]:
    return {
        kind: attributes(found)["rpc.grpc.status_code"]
        for kind, found in (await traced.spans()).items()
    }


async def late(traced: Traced, call: Callable[[float], Any]) -> None:
    """A call that ends at its deadline, in seconds, while it is handled."""

    async def failed(seconds: float) -> aio.AioRpcError:
        with pytest.raises(aio.AioRpcError) as caught:
            await call(seconds)
        return caught.value

    await at_its_deadline(traced.echo, failed)


async def test_a_deadline(traced: Traced) -> None:
    await late(traced, lambda seconds: traced.stub.Unary(b"sleep", timeout=seconds))
    assert await codes(traced) == {CLIENT: DEADLINE, SERVER: DEADLINE}


async def test_a_deadline_of_a_stream(traced: Traced) -> None:
    await late(traced, lambda seconds: drain(traced.stub.Stream(b"sleep", timeout=seconds)))
    assert await codes(traced) == {CLIENT: DEADLINE, SERVER: DEADLINE}


async def test_a_cancelled_call(traced: Traced) -> None:
    call = traced.stub.Unary(b"sleep")
    waiting = asyncio.ensure_future(end(call))
    await until(lambda: traced.echo.sleeping)
    call.cancel()
    await waiting
    spans = await traced.spans()
    assert {k: attributes(s)["rpc.grpc.status_code"] for k, s in spans.items()} == {
        CLIENT: CANCELLED,
        SERVER: CANCELLED,
    }
    assert spans[SERVER].status.code == UNSET


async def test_a_cancelled_stream(traced: Traced) -> None:
    call = traced.stub.Stream(b"sleep")
    assert await call.read() == b"first"
    await until(lambda: traced.echo.sleeping)
    call.cancel()
    assert await codes(traced) == {CLIENT: CANCELLED, SERVER: CANCELLED}


async def test_a_call_that_nobody_awaits(traced: Traced) -> None:
    call = traced.stub.Unary(b"x")
    await until(call.done)
    assert await codes(traced) == {CLIENT: OK, SERVER: OK}


async def test_two_hops_and_a_step_make_one_trace(traced: Traced) -> None:
    assert await traced.relay.Unary(b"xyz") == b"xyz"
    spans = await traced.all_spans(5)
    children = {s.parent_span_id: s for s in spans}
    chain = []
    parent = b""
    while parent in children:
        chain.append(children[parent])
        parent = chain[-1].span_id

    assert [(s.name, s.kind) for s in chain] == [
        ("test.Relay/Unary", CLIENT),
        ("test.Relay/Unary", SERVER),
        ("step", INNER),
        ("test.Echo/Unary", CLIENT),
        ("test.Echo/Unary", SERVER),
    ]
    assert len({s.trace_id for s in spans}) == 1
    assert attributes(chain[2]) == {"size": 3}
    assert current_trace.get() is None


async def test_a_step_that_fails(receiver: Receiver) -> None:
    with pytest.raises(KeyError), span("step"):
        raise KeyError("no")
    stop_tracing()
    (found,) = receiver.spans()
    assert found.status.code == ERROR
    assert found.events[0].name == "exception"


async def test_what_is_seen_inside_of_a_call(traced: Traced) -> None:
    await traced.stub.Unary(b"x")
    seen = traced.echo.seen["trace"]
    spans = await traced.spans()
    assert seen.trace_id == spans[SERVER].trace_id.hex()
    assert seen.traceparent.split("-")[2] == spans[SERVER].span_id.hex()


async def test_a_trace_from_outside_is_continued(traced: Traced) -> None:
    outside = TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "v=1")
    token = current_trace.set(outside)
    await traced.stub.Unary(b"x")
    current_trace.reset(token)
    spans = await traced.spans()
    assert spans[CLIENT].trace_id.hex() == outside.trace_id
    assert spans[CLIENT].parent_span_id.hex() == "b7ad6b7169203331"
    assert spans[SERVER].trace_state == "v=1"


async def test_health_is_not_traced(receiver: Receiver) -> None:
    directory = Path(tempfile.mkdtemp(prefix="na-"))
    server = ServiceServer(
        [registration(Echo())], directory / "s", SocketSettings(), active_tracer()
    )
    await server.start()
    async with open_channel(directory / "s") as channel:
        check: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
        assert await check(b"") == b"\x08\x01"
    await server.stop(0)
    await asyncio.to_thread(stop_tracing)
    assert receiver.spans() == []
    await asyncio.to_thread(shutil.rmtree, directory)


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        pytest.param({}, "numalign-test", id="ours"),
        pytest.param({"OTEL_SERVICE_NAME": "mine"}, "mine", id="service-name"),
        pytest.param({"OTEL_RESOURCE_ATTRIBUTES": "service.name=attr"}, "attr", id="attributes"),
    ],
)
def test_the_name_of_the_service(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], name: str
) -> None:
    with Receiver() as receiver:
        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint, **variables}
        for key, value in environ.items():
            monkeypatch.setenv(key, value)
        assert start_tracing("numalign-test", environ)
        with span("step"):
            pass
        stop_tracing()
        assert receiver.resources()[0]["service.name"] == name


def test_a_sampler_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    with Receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
        assert start_tracing("t", {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint})
        with span("step"):
            trace = current_trace.get()
            assert trace is not None
            assert int(trace.traceparent[-2:], 16) & 1 == 0
        stop_tracing()
        assert receiver.spans() == []


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        pytest.param({}, False, id="nothing"),
        pytest.param({"OTEL_SERVICE_NAME": "x"}, False, id="a-name-alone"),
        pytest.param({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, True, id="endpoint"),
        pytest.param({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False, id="empty-endpoint"),
        pytest.param({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, True, id="for-traces"),
        pytest.param({"OTEL_TRACES_EXPORTER": "otlp"}, True, id="exporter"),
        pytest.param(
            {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"},
            False,
            id="no-exporter",
        ),
        pytest.param(
            {"OTEL_SDK_DISABLED": "True", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"},
            False,
            id="disabled",
        ),
    ],
)
def test_who_asks_for_tracing(environ: dict[str, str], wanted: bool) -> None:
    assert wants_tracing(environ) is wanted


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        pytest.param(
            {"OTEL_TRACES_EXPORTER": "zipkin"}, 'unsupported exporter "zipkin"', id="exporter"
        ),
        pytest.param(
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
            'unsupported protocol "http/json"',
            id="protocol",
        ),
    ],
)
def test_what_is_not_supported_is_refused(environ: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        start_tracing("t", environ)
    assert active_tracer() is None


def test_without_the_variables_nothing_happens() -> None:
    assert not start_tracing("t", {})
    assert active_tracer() is None
    with span("step", size=1) as step:
        step.set_attribute("more", "x")
    stop_tracing()


def test_the_console_exporter(capfd: pytest.CaptureFixture[str]) -> None:
    script = (
        "from numalign.telemetry.tracing import *\n"
        "start_tracing('t', {'OTEL_TRACES_EXPORTER': 'console'})\n"
        "with span('step'): pass\n"
        "stop_tracing()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    assert '"name": "step"' in capfd.readouterr().out

"""A handler of others over a socket: what becomes of a pod when it does not answer well."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from grpc import aio
from tests.unit.admission.handlers.admit_pods import pod
from tests.waiting import LONG

from numalign.admission.chain.question import NodeFacts, Question
from numalign.admission.others.handler import OthersHandler, Terms
from numalign.admission.others.messages import OtherPods
from numalign.errors import Unavailable
from numalign.model.feature_gates import FeatureGates
from numalign.rpc.channel import open_channel
from numalign.telemetry import own_metrics
from numalign.telemetry.metrics import Metrics
from numalign.telemetry.spans import Tracer
from numalign.telemetry.tracing import use_tracer
from numalign.v1 import admit_handler_pb2 as ah

Answering = Callable[[bytes, Any], Awaitable[bytes]]
_QUESTION = Question(pod=pod(), facts=NodeFacts(node=None))
_ADMIT = ah.JudgeResponse(admit=ah.JudgeResponse.Admit()).SerializeToString()


class Generic(grpc.GenericRpcHandler):
    """A server whose answers are any bytes."""

    def __init__(self, answer: Answering) -> None:
        self._answer = answer

    def service(self, _: grpc.HandlerCallDetails) -> Any:
        return grpc.unary_unary_rpc_method_handler(self._answer)


@asynccontextmanager
async def _asked(
    tmp_path: Path,
    answer: Answering | None,
    metrics: Metrics,
    *,
    ignore_failure: bool = False,
    limit: float | None = None,
) -> AsyncIterator[OthersHandler]:
    socket = tmp_path / "h.sock"
    server = aio.server()
    if answer is not None:
        server.add_generic_rpc_handlers((Generic(answer),))
        server.add_insecure_port(f"unix:{socket}")
    await server.start()
    channel = open_channel(socket)
    limit = limit or (0.2 if answer is _hangs else LONG)
    terms = Terms(name="quota", endpoint=str(socket), timeout=limit, ignore_failure=ignore_failure)
    durations = metrics.histogram("numalign_admit_handler_duration_seconds")
    try:
        yield OthersHandler(terms, channel, OtherPods(FeatureGates()), durations)
    finally:
        await channel.close()
        await server.stop(0)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(own_metrics.ADMIT_HANDLERS, enabled=True)


async def _admits(_: bytes, __: Any) -> bytes:
    return _ADMIT


async def _hangs(_: bytes, __: Any) -> bytes:
    await asyncio.sleep(2 * LONG)
    return _ADMIT


async def _fails(_: bytes, __: Any) -> bytes:
    raise KeyError("oops")


async def _refuses_the_call(_: bytes, context: Any) -> bytes:
    await context.abort(grpc.StatusCode.PERMISSION_DENIED, "not for you")
    return b""


async def _is_garbage(_: bytes, __: Any) -> bytes:
    return b"\xff\xff\xff"


async def _is_empty(_: bytes, __: Any) -> bytes:
    return b""


_FAILURES = [
    pytest.param(
        None, r"cannot be reached at .*/h\.sock: No such file or directory$", id="nobody listens"
    ),
    pytest.param(_hangs, "no answer within 0.2 s", id="hangs"),
    pytest.param(_fails, "UNKNOWN: .*KeyError", id="raises"),
    pytest.param(_refuses_the_call, "PERMISSION_DENIED: not for you", id="another status"),
    pytest.param(_is_garbage, "its answer cannot be used", id="garbage"),
    pytest.param(_is_empty, "its answer cannot be used: the answer has no verdict", id="empty"),
]


async def test_an_answer_counts(tmp_path: Path, metrics: Metrics) -> None:
    async with _asked(tmp_path, _admits, metrics) as handler:
        step = handler.step()
        answer = await step.ask(_QUESTION)

    assert (step.name, step.is_remote) == ("quota", True)
    assert (answer.verdict.admit, answer.warnings) == (True, ())
    assert 'seconds_count{end="admitted",handler="quota"} 1.0' in metrics.text()


@pytest.mark.parametrize(("answer", "why"), _FAILURES)
async def test_no_answer_is_no_decision(
    tmp_path: Path, metrics: Metrics, answer: Answering | None, why: str
) -> None:
    """DES-3."""
    async with _asked(tmp_path, answer, metrics) as handler:
        with pytest.raises(Unavailable, match=f'admit handler "quota": {why}'):
            await handler.ask(_QUESTION)

    assert 'seconds_count{end="failed",handler="quota"} 1.0' in metrics.text()


@pytest.mark.parametrize(("answer", "why"), _FAILURES)
async def test_a_failure_that_may_be_ignored_is_named(
    tmp_path: Path, metrics: Metrics, answer: Answering | None, why: str
) -> None:
    async with _asked(tmp_path, answer, metrics, ignore_failure=True) as handler:
        given = await handler.ask(_QUESTION)

    assert given.verdict.admit
    (warning,) = given.warnings
    assert warning.startswith('admit handler "quota": ')
    assert warning.endswith("; the pod was judged without it")


async def test_a_caller_that_gives_up_is_no_failure(tmp_path: Path, metrics: Metrics) -> None:
    async with _asked(tmp_path, _hangs, metrics, limit=LONG) as handler:
        asked = asyncio.create_task(handler.ask(_QUESTION))
        await asyncio.sleep(0.01)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    assert 'seconds_count{end="cancelled",handler="quota"} 1.0' in metrics.text()


class Recorder:
    """A tracer that keeps the attributes of inner spans."""

    def __init__(self) -> None:
        self.spans: dict[str, dict[str, Any]] = {}

    @contextmanager
    def inner(self, name: str, attributes: Mapping[str, Any]) -> Iterator[Recorder]:
        self.spans[name] = dict(attributes)
        yield self

    def set_attribute(self, key: str, value: Any) -> None:
        self.spans["admit_handler"][key] = value


async def test_a_call_has_a_span(tmp_path: Path, metrics: Metrics) -> None:
    tracer = Recorder()
    use_tracer(cast("Tracer", tracer))
    try:
        async with _asked(tmp_path, _is_empty, metrics, ignore_failure=True) as handler:
            await handler.ask(_QUESTION)
    finally:
        use_tracer(None)

    assert tracer.spans == {
        "admit_handler": {"numalign.handler": "quota", "numalign.verdict": "failed"}
    }

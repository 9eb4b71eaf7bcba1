"""A span for each handler of the chain, which decides as it did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import pytest

from numalign.admission.chain.built_in import Chain
from numalign.admission.chain.question import Answer, Handler, Question, deciding
from numalign.admission.handlers.verdict import ADMITTED, Verdict, rejected
from numalign.admission.traced_handlers import traced_chain
from numalign.telemetry.spans import Tracer

QUESTION = cast("Question", None)


class Recorder:
    """Keeps the attributes of every span."""

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []

    @contextmanager
    def inner(self, name: str, attributes: Mapping[str, Any]) -> Iterator[Recorder]:
        self.spans.append({"name": name, **attributes})
        yield self

    def set_attribute(self, key: str, value: Any) -> None:
        self.spans[-1][key] = value


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        pytest.param(ADMITTED, "admitted", id="admitted"),
        pytest.param(rejected("OutOfcpu", "no"), "rejected", id="rejected"),
        pytest.param(Answer(rejected("x", "y"), retry_after=1), "deferred", id="deferred"),
        pytest.param(Answer(ADMITTED, victims=(cast("Any", 1),)), "deferred", id="victims"),
    ],
)
async def test_a_handler_decides_in_a_span(answer: Answer | Verdict, verdict: str) -> None:
    recorder = Recorder()
    chain = Chain(before=(deciding("a", lambda _: answer),))
    (handler,) = traced_chain(chain, cast("Tracer", recorder)).before
    plain = await chain.before[0].ask(QUESTION)
    assert await handler.ask(QUESTION) == plain
    (span,) = recorder.spans
    assert (span["name"], span["numalign.handler"]) == ("admit_handler", "a")
    assert span["numalign.verdict"] == verdict
    assert ("numalign.reason" in span) is (not plain.verdict.admit)


def test_those_of_others_make_their_own_spans() -> None:
    async def ask(question: Question) -> Answer:
        return Answer(ADMITTED)

    remote = Handler("theirs", ask, is_remote=True)
    chain = Chain(behind=(remote,), soft=(deciding("b", lambda _: ADMITTED),))
    traced = traced_chain(chain, cast("Tracer", Recorder()))
    assert traced.behind == (remote,)
    assert traced.soft != chain.soft

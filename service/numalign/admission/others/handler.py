"""One admit handler of somebody else, asked over gRPC.

Separate from the messages: here are deadline, failure policy, span and metric. What goes wrong
is no verdict (DES-3): the pod is not decided on, or the handler is left out and named.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError
from grpc import StatusCode, aio

from numalign.admission.chain.question import Answer, Handler, Question
from numalign.admission.handlers.verdict import ADMITTED
from numalign.admission.others.messages import (
    BadAnswer,
    OtherPods,
    answer_of,
    judge_request,
)
from numalign.admission.traced_handlers import verdict_word
from numalign.errors import Unavailable
from numalign.telemetry import attributes
from numalign.telemetry.logs import get_logger
from numalign.telemetry.metrics import Histogram
from numalign.telemetry.tracing import span
from numalign.v1 import admit_handler_pb2 as ah

_METHOD = "/numalign.v1.AdmitHandler/Judge"
_LONGEST_DETAILS = 512
_FAILED, _CANCELLED = "failed", "cancelled"

_log = get_logger("admit-handler")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a handler is asked. `endpoint` is its socket, `timeout` is in seconds.

    With `ignore_failure` pods go on without it while it does not answer.
    """

    name: str
    endpoint: str
    timeout: float
    ignore_failure: bool


@dataclass(frozen=True, slots=True)
class _NoAnswer:
    """There is none that could be used."""

    why: str


class OthersHandler:
    """Asks one handler over `channel`, which it does not close.

    `durations` hears of every call, with the handler's name and how it ended.
    """

    def __init__(
        self, terms: Terms, channel: aio.Channel, others: OtherPods, durations: Histogram
    ) -> None:
        self._terms = terms
        self._others = others
        self._durations = durations
        self._is_failing = False
        # The answer is parsed here: gRPC makes None of bytes that cannot be.
        self._judge: Callable[..., Any] = channel.unary_unary(
            _METHOD,
            request_serializer=ah.JudgeRequest.SerializeToString,
            response_deserializer=None,
        )

    def step(self) -> Handler:
        """The handler as a step of a chain."""
        return Handler(self._terms.name, self.ask, is_remote=True)

    async def ask(self, question: Question) -> Answer:
        """What the handler says. Raises Unavailable naming it where that cannot be had."""
        request = judge_request(question, self._others.messages(question.others))
        started = time.perf_counter()
        end = _CANCELLED
        with span("admit_handler", **{attributes.HANDLER: self._terms.name}) as inner:
            try:
                answer = await self._answer(request, question)
                end = _FAILED if isinstance(answer, _NoAnswer) else verdict_word(answer)
            finally:
                inner.set_attribute(attributes.VERDICT, end)
                self._durations.labels(self._terms.name, end).observe(time.perf_counter() - started)
            if isinstance(answer, _NoAnswer):
                return self._without(answer.why)
        self._note(failing=False)
        return answer

    async def _answer(self, request: ah.JudgeRequest, question: Question) -> Answer | _NoAnswer:
        try:
            data: bytes = await self._judge(request, timeout=self._terms.timeout)
            return answer_of(ah.JudgeResponse.FromString(data), question)
        except aio.AioRpcError as error:
            return _NoAnswer(self._why(error))
        except (BadAnswer, DecodeError) as error:
            return _NoAnswer(f"its answer cannot be used: {error}")

    def _without(self, why: str) -> Answer:
        """The pod goes on without the handler, or is not decided on."""
        self._note(failing=True, why=why)
        text = f'admit handler "{self._terms.name}": {why}'
        if not self._terms.ignore_failure:
            raise Unavailable(text)
        return Answer(ADMITTED, warnings=(f"{text}; the pod was judged without it",))

    def _note(self, *, failing: bool, why: str = "") -> None:
        """Log when it begins to fail and when it answers again, not every time."""
        if failing and not self._is_failing:
            _log.warning("admit handler fails", handler=self._terms.name, why=why)
        elif self._is_failing and not failing:
            _log.info("admit handler answers again", handler=self._terms.name)
        self._is_failing = failing

    def _why(self, error: aio.AioRpcError) -> str:
        code, details = error.code(), (error.details() or "")[:_LONGEST_DETAILS]
        if code is StatusCode.DEADLINE_EXCEEDED:
            return f"no answer within {self._terms.timeout:g} s"
        if code is StatusCode.UNAVAILABLE:
            # gRPC says at length what the system's word for it says.
            reason = details.rpartition("error: ")[2]
            return f"cannot be reached at {self._terms.endpoint}: {reason}"
        return f"{code.name}: {details}"

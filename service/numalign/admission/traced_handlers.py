"""A span for each admit handler that is asked, where spans are recorded.

Separate from the handlers, which are pure; those of others make their spans where they call.
"""

from __future__ import annotations

from dataclasses import replace

from numalign.admission.chain.built_in import Chain
from numalign.admission.chain.question import Answer, Handler, Question
from numalign.telemetry import attributes
from numalign.telemetry.spans import Tracer


def traced_chain(chain: Chain, tracer: Tracer) -> Chain:
    """The same chain; every built-in handler of it decides in a span."""

    def traced(handlers: tuple[Handler, ...]) -> tuple[Handler, ...]:
        return tuple(h if h.is_remote else _traced(h, tracer) for h in handlers)

    return Chain(before=traced(chain.before), behind=traced(chain.behind), soft=traced(chain.soft))


def _traced(handler: Handler, tracer: Tracer) -> Handler:
    async def ask(question: Question) -> Answer:
        with tracer.inner("admit_handler", {attributes.HANDLER: handler.name}) as span:
            answer = await handler.ask(question)
            span.set_attribute(attributes.VERDICT, verdict_word(answer))
            if not answer.verdict.admit:
                span.set_attribute(attributes.REASON, answer.verdict.reason)
        return answer

    return replace(handler, ask=ask)


def verdict_word(answer: Answer) -> str:
    """What an answer comes to: victims have to end before the pod is admitted."""
    if answer.retry_after is not None:
        return "deferred"
    if not answer.verdict.admit:
        return "rejected"
    return "deferred" if answer.victims else "admitted"

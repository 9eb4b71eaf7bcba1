"""Spans of what the agent and its plugin do about a pod: the beginnings of traces.

Separate from who does it. What a span says is worked out only where spans are recorded; without
a tracer nothing is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

from numalign.telemetry.spans import AttributeValue, InnerSpan
from numalign.telemetry.tracing import active_tracer, span


def pod_span(
    name: str, uid: str, namespace: str = "", pod: str = "", container: str = ""
) -> AbstractContextManager[InnerSpan]:
    """A step about a pod, or one container of it; fields that are not known are left out."""
    tracer = active_tracer()
    return (
        span(name) if tracer is None else tracer.inner(name, _about(uid, namespace, pod, container))
    )


def annotate_decision(verdict: str, reason: str = "") -> None:
    """Say on the span in hand what was decided; nothing where none is recorded."""
    tracer = active_tracer()
    if tracer is None:
        return
    from numalign.telemetry import attributes  # noqa: PLC0415 - only where spans are recorded

    tracer.annotate({attributes.VERDICT: verdict, attributes.REASON: reason})


def _about(uid: str, namespace: str, pod: str, container: str) -> Mapping[str, AttributeValue]:
    from numalign.telemetry import attributes  # noqa: PLC0415 - only where spans are recorded

    found = {**attributes.pod_attributes(uid, namespace, pod), attributes.CONTAINER: container}
    return {name: value for name, value in found.items() if value}

"""Spans by OpenTelemetry. Imported only where the environment asks for tracing.

Follows the semantic conventions for RPC: a span is named by the full method without its
leading slash and carries rpc.system, rpc.service, rpc.method and rpc.grpc.status_code. A
calling side is failed by every code but OK; a serving side only by codes that mean that the
server is at fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import Token
from typing import Self

from grpc import StatusCode
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SimpleSpanProcessor,
    SpanExporter,
)
from opentelemetry.trace import Span, SpanKind, Status
from opentelemetry.trace import StatusCode as SpanStatus
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from numalign.errors import ConfigError
from numalign.telemetry.spans import AttributeValue, InnerSpan
from numalign.telemetry.trace_context import (
    TRACEPARENT,
    TRACESTATE,
    TraceContext,
    current_trace,
)

_PROPAGATOR = TraceContextTextMapPropagator()
_SERVER_FAULTS = frozenset(
    {
        StatusCode.UNKNOWN,
        StatusCode.DEADLINE_EXCEEDED,
        StatusCode.UNIMPLEMENTED,
        StatusCode.INTERNAL,
        StatusCode.UNAVAILABLE,
        StatusCode.DATA_LOSS,
    }
)

_Token = tuple[Token[Context], Token[TraceContext | None]]


class OtelCallSpan:
    """The span of one hop; see `tracing.CallSpan`."""

    def __init__(self, span: Span, faults: frozenset[StatusCode] | None) -> None:
        self._span = span
        self._faults = faults

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The headers that make this span the parent on the other side."""
        return _trace_of(self._span).metadata()

    def enter(self) -> _Token:
        """Make this span current in the running task."""
        attached = otel_context.attach(trace.set_span_in_context(self._span))
        return attached, current_trace.set(_trace_of(self._span))

    def leave(self, token: object) -> None:
        """Make current what was current before."""
        if not isinstance(token, tuple):
            raise TypeError("the token of enter() is expected")
        attached, previous = token
        current_trace.reset(previous)
        otel_context.detach(attached)

    def end(self, code: StatusCode, description: str = "", at: int | None = None) -> None:
        """Note how the call ended."""
        self._span.set_attribute("rpc.grpc.status_code", code.value[0])
        failed = code is not StatusCode.OK if self._faults is None else code in self._faults
        if failed:
            text = f"{code.name}: {description}" if description else code.name
            self._span.set_status(Status(SpanStatus.ERROR, text))
        self._span.end(at)


class OtelTracer:
    """Makes spans with a TracerProvider of its own; no global of OpenTelemetry is touched."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("numalign")

    @classmethod
    def from_environment(cls, service: str, environ: Mapping[str, str]) -> Self:
        """A tracer that exports as the OTEL_ variables say.

        Raises ConfigError for an exporter or protocol that is not supported.
        """
        attributes: dict[str, str] = {}
        if not environ.get("OTEL_SERVICE_NAME") and "service.name=" not in environ.get(
            "OTEL_RESOURCE_ATTRIBUTES", ""
        ):
            attributes[SERVICE_NAME] = service
        provider = TracerProvider(resource=Resource.create(attributes))
        for name in (environ.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp").split(","):
            match name.strip().lower():
                case "otlp":
                    provider.add_span_processor(BatchSpanProcessor(_otlp_exporter(environ)))
                case "console":
                    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
                case other:
                    raise ConfigError(f'OTEL_TRACES_EXPORTER: unsupported exporter "{other}"')
        return cls(provider)

    def server(self, method: str, parent: TraceContext | None) -> OtelCallSpan:
        """The serving side of a call, below the caller's span if it sent one."""
        carrier: dict[str, str] = {}
        if parent is not None:
            carrier = {TRACEPARENT: parent.traceparent, TRACESTATE: parent.tracestate}
        span = self._tracer.start_span(
            method.lstrip("/"),
            # An empty base: the call belongs to its caller, not to whatever runs here.
            context=_PROPAGATOR.extract(carrier, context=Context()),
            kind=SpanKind.SERVER,
            attributes=_rpc_attributes(method),
        )
        return OtelCallSpan(span, _SERVER_FAULTS)

    def client(self, method: str) -> OtelCallSpan:
        """The calling side of a call, below the current span."""
        context = otel_context.get_current()
        passing = current_trace.get()
        if passing is not None and not trace.get_current_span(context).get_span_context().is_valid:
            carrier = {TRACEPARENT: passing.traceparent, TRACESTATE: passing.tracestate}
            context = _PROPAGATOR.extract(carrier, context=context)
        span = self._tracer.start_span(
            method.lstrip("/"),
            context=context,
            kind=SpanKind.CLIENT,
            attributes=_rpc_attributes(method),
        )
        return OtelCallSpan(span, None)

    def inner(
        self, name: str, attributes: Mapping[str, AttributeValue]
    ) -> AbstractContextManager[InnerSpan]:
        """A step below the current span."""
        return self._inner(name, attributes)

    def annotate(self, attributes: Mapping[str, AttributeValue]) -> None:
        """Add attributes to the current span."""
        trace.get_current_span().set_attributes(attributes)

    def shutdown(self) -> None:
        """Export what is left. Blocking."""
        self._provider.shutdown()

    @contextmanager
    def _inner(self, name: str, attributes: Mapping[str, AttributeValue]) -> Iterator[InnerSpan]:
        with self._tracer.start_as_current_span(name, attributes=attributes) as span:
            token = current_trace.set(_trace_of(span))
            try:
                yield span
            finally:
                current_trace.reset(token)


def _otlp_exporter(environ: Mapping[str, str]) -> SpanExporter:
    protocol = (
        environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
        or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
        or "grpc"
    )
    if protocol != "grpc":
        raise ConfigError(f'OTEL_EXPORTER_OTLP_PROTOCOL: unsupported protocol "{protocol}"')
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (  # noqa: PLC0415  large
        OTLPSpanExporter,
    )

    return OTLPSpanExporter()


def _rpc_attributes(method: str) -> dict[str, str]:
    service, _, name = method.lstrip("/").rpartition("/")
    return {"rpc.system": "grpc", "rpc.service": service, "rpc.method": name}


def _trace_of(span: Span) -> TraceContext:
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier, context=trace.set_span_in_context(span, Context()))
    return TraceContext(carrier[TRACEPARENT], carrier.get(TRACESTATE, ""))

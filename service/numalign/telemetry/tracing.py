"""Spans for every hop and for inner steps; nothing at all where tracing is not asked for.

Whether spans are recorded is decided once, at start, by OpenTelemetry's own environment
variables. Without them a tracer without function stands in and OpenTelemetry is not even
imported. Servers and channels take the tracer when they are built, so `start_tracing` comes
first.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from numalign.telemetry.spans import AttributeValue, InnerSpan, Tracer

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_EXPORTER = "OTEL_TRACES_EXPORTER"


class _NoSpan:
    def set_attribute(self, key: str, value: AttributeValue) -> None:
        """Nothing records it."""


_NO_SPAN: AbstractContextManager[InnerSpan] = nullcontext(_NoSpan())


class _Active:
    tracer: Tracer | None = None


def wants_tracing(environ: Mapping[str, str]) -> bool:
    """Whether the standard variables ask for spans to be exported."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environ.get(_EXPORTER, "").strip().lower()
    if exporter:
        return exporter != "none"
    return any(environ.get(name) for name in _ENDPOINTS)


def start_tracing(service: str, environ: Mapping[str, str]) -> bool:
    """Start to export spans as the OTEL_ variables say; returns whether they ask for it.

    `service` is the name of the service where OTEL_SERVICE_NAME gives none. Endpoint, sampler
    and the like are read by the SDK from the process's own environment. Raises ConfigError
    for an exporter or protocol that is not supported.
    """
    if not wants_tracing(environ):
        return False
    from numalign.telemetry.otel_tracer import OtelTracer  # noqa: PLC0415  costs memory

    _Active.tracer = OtelTracer.from_environment(service, environ)
    return True


def use_tracer(tracer: Tracer | None) -> None:
    """Make `tracer` the process's tracer; None turns tracing off."""
    _Active.tracer = tracer


def active_tracer() -> Tracer | None:
    """The process's tracer; None where nothing is recorded."""
    return _Active.tracer


def stop_tracing() -> None:
    """Export what is left and stop. Blocking; does nothing where tracing is off."""
    tracer, _Active.tracer = _Active.tracer, None
    if tracer is not None:
        tracer.shutdown()


def span(name: str, **attributes: AttributeValue) -> AbstractContextManager[InnerSpan]:
    """A context manager for a step inside this service.

    For example: `with span("merge", providers=3): ...`.
    """
    tracer = _Active.tracer
    return _NO_SPAN if tracer is None else tracer.inner(name, attributes)

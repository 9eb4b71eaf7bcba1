"""Metrics of one process: what is declared becomes a registry and an HTTP page, or nothing.

Separate from the declarations (`kubelet_metrics`, `own_metrics`), which are plain data: so
they can be listed without prometheus_client, and a service that serves no metrics neither
loads it nor counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from numalign.errors import ConfigError
from numalign.telemetry.trace_context import current_trace

if TYPE_CHECKING:
    from threading import Thread
    from wsgiref.simple_server import WSGIServer

    from prometheus_client import CollectorRegistry, Metric
    from prometheus_client import Gauge as PrometheusGauge
    from prometheus_client import Histogram as PrometheusHistogram


class Kind(StrEnum):
    """What a metric measures."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """One declared metric. `buckets` are upper bounds, ascending, of a histogram.

    `start` holds the label values of the series that exist, at 0, from the start on; a metric
    without labels always does.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    start: tuple[tuple[str, ...], ...] = ()


class Counter(Protocol):
    """Counts up. With labels it is used through `labels(...)`, values in declared order."""

    def labels(self, *values: str) -> Counter:
        """The series with these label values."""

    def inc(self, amount: float = 1) -> None:
        """Add `amount`, not negative."""


class Gauge(Protocol):
    """Goes up and down; labels as for a counter."""

    def labels(self, *values: str) -> Gauge:
        """The series with these label values."""

    def inc(self, amount: float = 1) -> None:
        """Add `amount`, which may be negative."""

    def set(self, value: float) -> None:
        """Make it `value`."""

    def set_function(self, f: Callable[[], float]) -> None:
        """Make it what `f` returns whenever the page is read, from the page's thread."""

    def remove(self, *values: str) -> None:
        """There is no such series any more."""


class Histogram(Protocol):
    """Counts observations by size; labels as for a counter."""

    def labels(self, *values: str) -> Histogram:
        """The series with these label values."""

    def observe(self, amount: float) -> None:
        """Count one observation of `amount`."""


class _Nothing:
    """Stands for every instrument of a process that serves no metrics."""

    def labels(self, *values: str) -> Self:  # noqa: ARG002  the protocol's argument
        return self

    def inc(self, amount: float = 1) -> None:
        """Nobody looks."""

    def set(self, value: float) -> None:
        """Nobody looks."""

    def set_function(self, f: Callable[[], float]) -> None:
        """Nobody looks."""

    def remove(self, *values: str) -> None:
        """Nobody looks."""

    def observe(self, amount: float) -> None:
        """Nobody looks."""


_NOTHING = _Nothing()


class Metrics:
    """The instruments of one process by name. `serve` shows them; `close` ends that."""

    def __init__(self, specs: Iterable[MetricSpec], *, enabled: bool) -> None:
        """Make every instrument of `specs`; where not `enabled`, they do nothing."""
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, Gauge] = {}
        self._histograms: dict[str, Histogram] = {}
        self._registry: CollectorRegistry | None = None
        self._server: tuple[WSGIServer, Thread] | None = None
        if enabled:
            self._registry = _new_registry()
        for spec in specs:
            match spec.kind:
                case Kind.COUNTER:
                    self._counters[spec.name] = _counter(spec, self._registry)
                case Kind.GAUGE:
                    self._gauges[spec.name] = _gauge(spec, self._registry)
                case Kind.HISTOGRAM:
                    self._histograms[spec.name] = _histogram(spec, self._registry)

    @property
    def enabled(self) -> bool:
        """Whether anything is counted."""
        return self._registry is not None

    def counter(self, name: str) -> Counter:
        """The counter declared as `name`; KeyError if this process has none."""
        return self._counters[name]

    def gauge(self, name: str) -> Gauge:
        """The gauge declared as `name`; KeyError if this process has none."""
        return self._gauges[name]

    def histogram(self, name: str) -> Histogram:
        """The histogram declared as `name`; KeyError if this process has none."""
        return self._histograms[name]

    def text(self) -> str:
        """The page as Prometheus reads it; empty where metrics are off."""
        if self._registry is None:
            return ""
        from prometheus_client import generate_latest  # noqa: PLC0415

        return generate_latest(self._registry).decode()

    def serve(self, host: str, port: int) -> int:
        """Serve the page over HTTP, in a thread, until `close`; returns the port (0: any free).

        Raises ConfigError naming the address when it cannot be used, and when metrics are off.
        """
        if self._registry is None:
            raise ConfigError(f"metrics are off, and cannot be served on {host}:{port}")
        from prometheus_client import start_http_server  # noqa: PLC0415

        try:
            self._server = start_http_server(port, host, self._registry)
        except OSError as error:
            raise ConfigError(f"metrics address {host}:{port}: {error.strerror}") from error
        return int(self._server[0].server_port)

    async def close(self) -> None:
        """Stop serving; does nothing where nothing is served."""
        if self._server is None:
            return
        server, thread = self._server
        self._server = None
        # The server's loop looks up twice a second; the event loop must not wait for it.
        await asyncio.to_thread(server.shutdown)
        server.server_close()
        await asyncio.to_thread(thread.join)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


def _new_registry() -> CollectorRegistry:
    import prometheus_client  # noqa: PLC0415  costs memory

    # Series that say when another series began; the kubelet has none.
    disable: Callable[[], None] = prometheus_client.disable_created_metrics
    disable()
    return prometheus_client.CollectorRegistry()


def _counter(spec: MetricSpec, registry: CollectorRegistry | None) -> Counter:
    if registry is None:
        return _NOTHING
    import prometheus_client  # noqa: PLC0415

    if spec.name.endswith("_total"):
        counter = prometheus_client.Counter(spec.name, spec.help, spec.labels, registry=registry)
        for values in spec.start:
            counter.labels(*values)
        return counter
    # prometheus_client would append "_total"; the kubelet's name has none.
    gauge = prometheus_client.Gauge(spec.name, spec.help, spec.labels, registry=None)
    for values in spec.start:
        gauge.labels(*values)
    registry.register(_Untyped(gauge))
    return gauge


def _gauge(spec: MetricSpec, registry: CollectorRegistry | None) -> Gauge:
    if registry is None:
        return _NOTHING
    import prometheus_client  # noqa: PLC0415

    gauge = prometheus_client.Gauge(spec.name, spec.help, spec.labels, registry=registry)
    for values in spec.start:
        gauge.labels(*values)
    return gauge


def _histogram(spec: MetricSpec, registry: CollectorRegistry | None) -> Histogram:
    if registry is None:
        return _NOTHING
    import prometheus_client  # noqa: PLC0415

    histogram = prometheus_client.Histogram(
        spec.name, spec.help, spec.labels, registry=registry, buckets=spec.buckets
    )
    for values in spec.start:
        histogram.labels(*values)
    return _WithExemplars(histogram)


class _WithExemplars:
    """A histogram whose buckets name the trace of what fell into them last (OpenMetrics).

    Only traces that are sampled: nobody could look up another one.
    """

    __slots__ = ("_histogram",)

    def __init__(self, histogram: PrometheusHistogram) -> None:
        self._histogram = histogram

    def labels(self, *values: str) -> Histogram:
        return _WithExemplars(self._histogram.labels(*values))

    def observe(self, amount: float) -> None:
        trace = current_trace.get()
        if trace is None or not trace.is_sampled:
            self._histogram.observe(amount)
        else:
            self._histogram.observe(amount, {"trace_id": trace.trace_id})


class _Untyped:
    """Shows a counter under its very name, for which the page has no type."""

    def __init__(self, gauge: PrometheusGauge) -> None:
        self._gauge = gauge

    def collect(self) -> Iterator[Metric]:
        from prometheus_client import Metric  # noqa: PLC0415

        for metric in self._gauge.collect():
            untyped = Metric(metric.name, metric.documentation, "unknown")
            untyped.samples = list(metric.samples)
            yield untyped

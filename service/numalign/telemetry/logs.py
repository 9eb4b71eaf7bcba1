"""Structured logs on standard error: set up once per process, by configuration.

Separate so that every module gets its logger here: `from numalign.telemetry.logs import
get_logger`. Fields that belong to a whole request (pod, container, provider, admission_id)
are bound for its duration with `log_fields`; the trace id is added by itself.

Levels:

    error    a human has to do something: state that cannot be written, an internal fault
    warning  works, but not as configured: a provider that is ignored, a setting that is
             overridden, state that was put in order
    info     what happened to a pod (admitted, rejected, released) and to the process (started,
             serving, reloaded, stopped): one line each
    debug    how a decision came about: hints, merges, calls. Off in production
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping, MutableMapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, TextIO, cast

from numalign.telemetry.lean_structlog import structlog
from numalign.telemetry.log_stream import LogStream
from numalign.telemetry.trace_context import current_trace

LEVELS: Mapping[str, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
"""The levels that a configuration can name."""

FIELDS = ("pod", "pod_uid", "container", "provider", "admission_id")
"""Names for what a line is about; every module uses these. `pod` is `<namespace>/<name>`."""

_bound: ContextVar[Mapping[str, str]] = ContextVar("numalign_log_fields", default={})  # noqa: B039  never changed in place

Logger = structlog.typing.FilteringBoundLogger


_loggers: list[Logger] = []
"""The loggers of all modules, which live as long as the process."""


def get_logger(name: str) -> Logger:
    """A logger whose lines carry `component=name`; `name` is the module's part of the service."""
    logger: Logger = structlog.get_logger(component=name)
    _loggers.append(logger)
    return logger


def log_fields(**fields: str) -> AbstractContextManager[None]:
    """Bind fields (FIELDS) to every line that is logged inside of a `with` block."""
    return _Bound(fields)


def configure_logs(format_: str, level: str, stream: TextIO | None = None) -> None:
    """Log to `stream` (standard error) as `json` or `console`, from `level` on.

    Lines of libraries that use the standard library's logging come out in the same form, from
    `warning` on. Lines that cannot be written fail nobody; they are counted and the count is
    logged later. Raises KeyError for a level that is not in LEVELS and ValueError for another
    format; the configuration has checked both.
    """
    stream = sys.stderr if stream is None else stream
    least = LEVELS[level]
    structlog.configure(
        processors=[*_SHARED, *_renderers(format_)],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=structlog.WriteLoggerFactory(
            file=cast("TextIO", LogStream(stream, _lost_in_json if format_ == "json" else _lost))
        ),
        cache_logger_on_first_use=True,
    )
    for logger in _loggers:
        # What a logger has worked out on its first use is worked out anew.
        vars(logger).pop("bind", None)
    root = logging.getLogger()
    for handler in [h for h in root.handlers if isinstance(h, _Forward)]:
        root.removeHandler(handler)
    root.addHandler(_Forward(max(least, logging.WARNING)))


class _Bound:
    # One variable for all fields: the call is in the way of every admission, several times.

    __slots__ = ("_fields", "_token")

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._fields = fields

    def __enter__(self) -> None:
        self._token = _bound.set({**_bound.get(), **self._fields})

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _bound.reset(self._token)


class _Forward(logging.Handler):
    """Hands the lines of other libraries to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {"component": record.name}
        if record.exc_info and record.exc_info[0] is not None:
            fields["exc_info"] = record.exc_info
        structlog.get_logger().log(record.levelno, record.getMessage(), **fields)


def _add_bound(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    for name, value in _bound.get().items():
        event.setdefault(name, value)
    return event


def _add_trace_id(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    trace = current_trace.get()
    if trace is not None:
        event["trace_id"] = trace.trace_id
    return event


_LOST = "lines could not be written"

_SHARED: tuple[structlog.typing.Processor, ...] = (
    _add_bound,
    _add_trace_id,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)


def _renderers(format_: str) -> tuple[structlog.typing.Processor, ...]:
    match format_:
        case "json":
            return (structlog.processors.format_exc_info, structlog.processors.JSONRenderer())
        case "console":
            return (structlog.dev.ConsoleRenderer(colors=False),)
        case other:
            raise ValueError(f'unknown log format "{other}"')


def _lost(count: int) -> str:
    return f"{_LOST} count={count} level=error"


def _lost_in_json(count: int) -> str:
    return json.dumps({"component": "logs", "event": _LOST, "count": count, "level": "error"})


def _standard_error(*_: object) -> structlog.WriteLogger:
    return structlog.WriteLogger(sys.stderr)


# Until `configure_logs`, as where a node is embedded in another program: only trouble is told.
structlog.configure(
    processors=[*_SHARED, *_renderers("json")],
    wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
    logger_factory=_standard_error,
)

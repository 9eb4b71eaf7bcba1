"""What a tracer is to those who are traced.

Separate from starting one, which chooses among tracers, and from each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from grpc import StatusCode

from numalign.telemetry.trace_context import TraceContext

AttributeValue = str | bool | int | float


class CallSpan(Protocol):
    """The span of one hop."""

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The trace context to send with the call that this span stands for."""

    def enter(self) -> object:
        """Make this the parent of what the running task does next; returns a token."""

    def leave(self, token: object) -> None:
        """Undo `enter`, in the same task."""

    def end(self, code: StatusCode, description: str = "", at: int | None = None) -> None:
        """The call ended with `code`, now or `at` nanoseconds since the epoch. Once."""


class InnerSpan(Protocol):
    """The span of a step inside one service."""

    def set_attribute(self, key: str, value: AttributeValue) -> None:
        """Add what is known only later."""


class Tracer(Protocol):
    """Makes spans."""

    def server(self, method: str, parent: TraceContext | None) -> CallSpan:
        """The serving side of a call to `method` (`/package.Service/Method`)."""

    def client(self, method: str) -> CallSpan:
        """The calling side of a call to `method`, below the span that is current."""

    def inner(
        self, name: str, attributes: Mapping[str, AttributeValue]
    ) -> AbstractContextManager[InnerSpan]:
        """A step below the span that is current; an exception marks it as failed."""

    def annotate(self, attributes: Mapping[str, AttributeValue]) -> None:
        """Add attributes to the span that is current; nothing where there is none."""

    def shutdown(self) -> None:
        """Export what is left. Blocking."""

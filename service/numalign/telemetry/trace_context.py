"""The W3C trace context of the work in hand: where it comes from and how it is passed on.

Separate from `tracing`, because the context is read, logged and passed on even where nothing
is recorded: a service without an exporter must not cut a trace in two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass

TRACEPARENT = "traceparent"
TRACESTATE = "tracestate"

_VALID = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True, slots=True)
class TraceContext:
    """The two headers of W3C Trace Context; `traceparent` is valid, `tracestate` may be empty."""

    traceparent: str
    tracestate: str = ""

    @property
    def trace_id(self) -> str:
        """The 32 hexadecimal digits that all spans of one trace share."""
        return self.traceparent[3:35]

    @property
    def is_sampled(self) -> bool:
        """Whether the caller says that spans of this trace are recorded."""
        return bool(int(self.traceparent[53:55], 16) & 1)

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What to send with a call."""
        parent = (TRACEPARENT, self.traceparent)
        return (parent, (TRACESTATE, self.tracestate)) if self.tracestate else (parent,)


current_trace: ContextVar[TraceContext | None] = ContextVar("numalign_trace", default=None)
"""The trace that the running task works for; None outside of any trace."""


def trace_of(metadata: Iterable[tuple[str, str | bytes]]) -> TraceContext | None:
    """The trace context of a call's metadata; None where there is none or it is malformed.

    As the W3C recommendation has it, a malformed `traceparent` means that a new trace begins.
    """
    parent = state = ""
    for key, value in metadata:
        if key == TRACEPARENT and isinstance(value, str):
            parent = value
        elif key == TRACESTATE and isinstance(value, str):
            state = f"{state},{value}" if state else value
    # A later version may have more fields behind the four that are known.
    if len(parent) < 55 or not _VALID.fullmatch(parent[:55]):
        return None
    if len(parent) > 55 and (parent.startswith("00") or parent[55] != "-"):
        return None
    return TraceContext(parent, state)

"""Durations as Kubernetes writes them: `300ms`, `1.5h`, `1m30s`.

Separate because configuration keys and device replies speak of time alike.
"""

from __future__ import annotations

import re

from numalign.model.quoting import quoted

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)", re.ASCII)


class DurationSyntaxError(ValueError):
    """A text that is no duration; the message shows it."""


def parse_duration(text: str) -> float:
    """The duration in seconds. Every number needs a unit, but `0` stands alone.

    Raises DurationSyntaxError.
    """
    sign = -1.0 if text.startswith("-") else 1.0
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0.0
    total, position = 0.0, 0
    while part := _PART.match(rest, position):
        total += float(part[1]) * _SECONDS[part[2]]
        position = part.end()
    if position == 0 or position != len(rest):
        raise DurationSyntaxError(f"must be a duration such as 5s or 1m30s, not {quoted(text)}")
    return sign * total

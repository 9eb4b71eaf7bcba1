"""Times as Kubernetes writes them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(seconds: float) -> str:
    """Whole seconds since the epoch as `2026-01-31T12:00:00Z`."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(text: str) -> float:
    """The opposite. Raises ValueError for a text that is no time."""
    return datetime.fromisoformat(text).timestamp()

"""Sentences on wrong fields, worded as the Kubernetes API server words them.

Separate because reading a message and reading JSON find the same kinds of faults.
"""

from __future__ import annotations

from collections.abc import Iterable

from numalign.errors import FieldViolation
from numalign.model.quoting import quoted

_SHOWN = 1024
"""How much of a wrong value is shown, in characters: an answer has to stay small."""


def required(path: str, detail: str = "") -> FieldViolation:
    """A field that must be there is not."""
    return FieldViolation(path, f"Required value: {detail}" if detail else "Required value")


def invalid(path: str, value: str, detail: str) -> FieldViolation:
    """A field holds a value that it must not hold."""
    return FieldViolation(path, f"Invalid value: {_shown(value)}: {detail}")


def duplicate(path: str, value: str) -> FieldViolation:
    """A value stands twice where it must be unique."""
    return FieldViolation(path, f"Duplicate value: {_shown(value)}")


def unsupported(path: str, value: str, supported: Iterable[str]) -> FieldViolation:
    """A value is none of the words that are known."""
    words = ", ".join(quoted(word) for word in supported)
    return FieldViolation(path, f"Unsupported value: {_shown(value)}: supported values: {words}")


def too_long(path: str, limit: int) -> FieldViolation:
    """Something takes more than `limit` bytes."""
    return FieldViolation(path, f"Too long: may not be more than {limit} bytes")


def _shown(value: str) -> str:
    if len(value) <= _SHOWN:
        return quoted(value)
    return f"{quoted(value[:_SHOWN])}... ({len(value)} characters)"

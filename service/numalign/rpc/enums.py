"""Enumerations of requests: a number that has no name is the caller's mistake.

Separate because proto3 hands unknown numbers through, and several services read the same ones.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from numalign.errors import FieldViolation, InvalidInput


class Enumeration(Protocol):
    """A generated enumeration."""

    def values(self) -> Collection[int]:
        """The numbers that have names."""


def refuse_unknown(path: str, value: int, enumeration: Enumeration) -> None:
    """Raise InvalidInput naming `path` where `value` is none of the enumeration."""
    if value not in enumeration.values():
        raise InvalidInput(FieldViolation(path, f"Unsupported value: {value}"))

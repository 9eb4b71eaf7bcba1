"""A place in a chain of admit handlers. Separate because the configuration names one, too."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Position(StrEnum):
    """How a handler stands to the one that its place names."""

    BEFORE = "before"
    AFTER = "after"
    REPLACES = "replaces"


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a chain: in front of, behind or instead of the handler of that name."""

    position: Position
    handler: str

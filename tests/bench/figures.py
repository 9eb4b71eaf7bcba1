"""One measured number and what it ought to be; and points of a curve.

Separate from what measures and from what is printed. What counts of a figure, for its target and
against an earlier one, is its ratio to a floor of the same run if it has a floor, else itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Of(StrEnum):
    """Which number of a figure a target is for."""

    RATIO = "ratio"
    VALUE = "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a number has to reach: at most `limit`, or at least that."""

    limit: float
    of: Of = Of.VALUE
    at_least: bool = False

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:g}"


def at_most(limit: float) -> Target:
    """The measured number itself is to be no larger."""
    return Target(limit=limit)


def at_most_floors(limit: float) -> Target:
    """It is to be no more than so many floors."""
    return Target(limit=limit, of=Of.RATIO)


def at_least_floors(limit: float) -> Target:
    """It is to be so many floors or more."""
    return Target(limit=limit, of=Of.RATIO, at_least=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number in `unit`, and a floor that was measured beside it.

    `portable`: the number means the same on every machine, as sizes do and times do not.
    `more_is_better` turns what counts as worse.
    """

    name: str
    unit: str
    value: float
    floor: float | None = None
    target: Target | None = None
    portable: bool = False
    more_is_better: bool = False

    @property
    def ratio(self) -> float | None:
        """How many floors it is."""
        return None if self.floor is None else self.value / self.floor

    @property
    def compared(self) -> float | None:
        """What an earlier run of another machine can be compared with; None if nothing can."""
        return self.ratio if self.floor is not None else self.value if self.portable else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Points of one line of a plot; `plot` says which."""

    plot: str
    name: str
    points: tuple[tuple[float, float], ...]


Measured: TypeAlias = Sequence[Figure | Curve]
"""What a part comes to."""

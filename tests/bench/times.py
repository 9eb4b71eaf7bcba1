"""Times of many repetitions: what share of them took how long."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

PERCENTS = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98, 99)
"""Where a curve of latency has its points."""


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of many repetitions, ascending."""

    samples: tuple[float, ...]

    @classmethod
    def of(cls, samples: Iterable[float]) -> Times:
        """The times in any order."""
        return cls(tuple(sorted(samples)))

    def at(self, share: float) -> float:
        """The time that `share` of the repetitions did not exceed."""
        return self.samples[min(len(self.samples) - 1, int(share * len(self.samples)))]

    @property
    def points(self) -> tuple[tuple[float, float], ...]:
        """Percent and milliseconds, for a curve."""
        return tuple((percent, self.at(percent / 100)) for percent in PERCENTS)


@dataclass(frozen=True, slots=True)
class Compared:
    """Floor and product of one layout."""

    floor: Times
    product: Times

"""What several runs of the same part come to: the median, and how far they were apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from tests.bench.figures import Curve, Figure, Measured, Of, Target


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one name, one from each run. All numbers are medians over the runs."""

    part: str
    runs: tuple[Figure, ...]

    @property
    def name(self) -> str:
        """What was measured."""
        return self.runs[0].name

    @property
    def unit(self) -> str:
        """What `value` and `floor` are in."""
        return self.runs[0].unit

    @property
    def value(self) -> float:
        """The number itself."""
        return median(figure.value for figure in self.runs)

    @property
    def floor(self) -> float | None:
        """What it is compared with."""
        return _median(figure.floor for figure in self.runs)

    @property
    def ratio(self) -> float | None:
        """How many floors it is: the median of the ratios, not the ratio of the medians."""
        return _median(figure.ratio for figure in self.runs)

    @property
    def compared(self) -> float | None:
        """What means the same on every machine; None if nothing does."""
        return _median(figure.compared for figure in self.runs)

    @property
    def more_is_better(self) -> bool:
        """Whether a smaller number is the worse one."""
        return self.runs[0].more_is_better

    @property
    def target(self) -> Target | None:
        """What it has to reach."""
        return self.runs[0].target

    @property
    def shown(self) -> Of:
        """Which number the spread is told of: the one that has a target, else the ratio."""
        if self.target is not None:
            return self.target.of
        return Of.VALUE if self.floor is None else Of.RATIO

    @property
    def extremes(self) -> tuple[float, float]:
        """The least and the largest of all runs, of the number that is shown."""
        numbers = [
            figure.value if self.shown is Of.VALUE or figure.ratio is None else figure.ratio
            for figure in self.runs
        ]
        return min(numbers), max(numbers)

    @property
    def reached(self) -> bool | None:
        """Whether the median reaches the target; None without one."""
        if self.target is None:
            return None
        number = self.value if self.target.of is Of.VALUE else self.ratio
        if number is None:
            raise ValueError(f"{self.name} has a target for its ratio and no floor")
        if self.target.at_least:
            return number >= self.target.limit
        return number <= self.target.limit


def rows_of(part: str, runs: Sequence[Measured]) -> list[Row]:
    """The figures of all runs of a part, by name, in the order of the first run."""
    by_name: dict[str, list[Figure]] = {}
    for run in runs:
        for one in run:
            if isinstance(one, Figure):
                by_name.setdefault(one.name, []).append(one)
    return [Row(part, tuple(figures)) for figures in by_name.values()]


def curves_of(runs: Sequence[Measured]) -> list[Curve]:
    """The curves of all runs, each point the median over the runs."""
    by_name: dict[tuple[str, str], dict[float, list[float]]] = {}
    for run in runs:
        for one in run:
            if isinstance(one, Curve):
                points = by_name.setdefault((one.plot, one.name), {})
                for x, y in one.points:
                    points.setdefault(x, []).append(y)
    return [
        Curve(plot=plot, name=name, points=tuple((x, median(ys)) for x, ys in points.items()))
        for (plot, name), points in by_name.items()
    ]


def _median(numbers: Iterable[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return median(known) if known else None

"""The rows of a run for people, as a table, and for programs, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table
from tests.bench.figures import Curve, Of
from tests.bench.spread import Row


def table(rows: Sequence[Row]) -> Table:
    """Medians over the runs, how far the runs were apart, and the target."""
    heads = ("", "measured", "floor", "ratio", "runs", "target", "")
    drawn = Table(*heads, box=None)
    for row in rows:
        drawn.add_row(
            row.name,
            f"{row.value:.3g} {row.unit}".rstrip(),
            "" if row.floor is None else f"{row.floor:.3g} {row.unit}",
            "" if row.ratio is None else f"{row.ratio:.2f}",
            _runs(row),
            _target(row),
            {None: "", True: "reached", False: "missed"}[row.reached],
        )
    return drawn


def document(
    rows: Sequence[Row], curves: Sequence[Curve], surroundings: Mapping[str, str]
) -> dict[str, object]:
    """Everything that was measured."""
    return {
        "machine": dict(surroundings),
        "rows": [_row(row) for row in rows],
        "curves": [
            {"plot": curve.plot, "name": curve.name, "points": [list(p) for p in curve.points]}
            for curve in curves
        ],
    }


def _row(row: Row) -> dict[str, object]:
    least, largest = row.extremes
    return {
        "part": row.part,
        "name": row.name,
        "unit": row.unit,
        "value": row.value,
        "floor": row.floor,
        "ratio": row.ratio,
        "runs": len(row.runs),
        "of": row.shown.value,
        "least": least,
        "largest": largest,
        "target": None if row.target is None else str(row.target),
        "reached": row.reached,
    }


def _runs(row: Row) -> str:
    least, largest = row.extremes
    return "" if len(row.runs) == 1 else f"{least:.3g} to {largest:.3g}"


def _target(row: Row) -> str:
    if row.target is None:
        return ""
    return f"{row.target} {'x' if row.target.of is Of.RATIO else row.unit}".rstrip()

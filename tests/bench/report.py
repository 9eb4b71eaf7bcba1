"""The rows of a run for people, as a table, and for programs, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
    rows: Sequence[Row],
    curves: Mapping[str, Sequence[Curve]],
    surroundings: Mapping[str, str],
    before: Mapping[str, Any] | None = None,
) -> dict[str, object]:
    """Everything that was measured; `curves` by part.

    What `before`, such a document, says of other parts stays in its place.
    """
    made = {
        "rows": [_row(row) for row in rows],
        "curves": [_curve(part, curve) for part, drawn in curves.items() for curve in drawn],
    }
    for kind, entries in made.items():
        kept = () if before is None else before[kind]
        entries += [entry for entry in kept if entry["part"] not in curves]
    return {"machine": dict(surroundings), **made}


def _curve(part: str, curve: Curve) -> dict[str, object]:
    return {
        "part": part,
        "plot": curve.plot,
        "name": curve.name,
        "points": [[x, _rounded(y)] for x, y in curve.points],
    }


def _rounded(number: float | None) -> float | None:
    """Four digits, which is more than runs agree on."""
    return None if number is None else float(f"{number:.4g}")


def _row(row: Row) -> dict[str, object]:
    least, largest = row.extremes
    return {
        "part": row.part,
        "name": row.name,
        "unit": row.unit,
        "value": _rounded(row.value),
        "floor": _rounded(row.floor),
        "ratio": _rounded(row.ratio),
        "runs": len(row.runs),
        "of": row.shown.value,
        "least": _rounded(least),
        "largest": _rounded(largest),
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

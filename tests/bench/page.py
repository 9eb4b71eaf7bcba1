"""Put what was measured into a page: its table, and the plots beside it.

    python -m tests.bench.page docs/performance.json docs/performance.md

The table stands between two comments of the page; plots go into the directory `performance`
beside it. Separate from measuring, so that a page can be made again from what is committed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.family_bench import LIMITS
from tests.bench.growth_bench import LEVELS
from tests.bench.line_chart import Axis, Line, decades, line_chart
from tests.bench.parts import PARTS
from tests.bench.times import PERCENTS

_TABLE = re.compile(r"(?<=<!-- measured -->\n).*?(?=<!-- end of measured -->)", re.DOTALL)
_Curves = Mapping[str, tuple[tuple[float, float], ...]]


def main(measured: Path, page: Path) -> None:
    """Write both. Raises ValueError for a page without the two comments."""
    document = json.loads(measured.read_text())
    text, count = _TABLE.subn(lambda _: "\n".join(_lines(document)) + "\n", page.read_text())
    if count != 1:
        raise ValueError(f"{page} needs one pair of comments around its table, has {count}")
    page.write_text(text)
    directory = page.with_suffix("")
    directory.mkdir(exist_ok=True)
    for name, drawn in _plots(document["curves"]).items():
        (directory / f"{name}.svg").write_text(drawn)


def _lines(document: Mapping[str, Any]) -> list[str]:
    machine = ", ".join(f"{name}: {value}" for name, value in document["machine"].items())
    heads = ("", "measured", "floor", "ratio", "least to largest run", "target", "")
    order = list(PARTS)
    known = sorted(document["rows"], key=lambda row: order.index(row["part"]))
    rows = [_cells(row) for row in known]
    return [
        f"{machine[0].upper()}{machine[1:]}.",
        "",
        f"| {' | '.join(heads)} |",
        f"|{' --- |' * len(heads)}",
        *(f"| {' | '.join(cells)} |" for cells in rows),
    ]


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    unit = f" {row['unit']}" if row["unit"] else ""
    shown = "x" if row["of"] == "ratio" else row["unit"]
    target = row["target"]
    return (
        row["name"],
        f"{_short(row['value'])}{unit}",
        "" if row["floor"] is None else f"{_short(row['floor'])}{unit}",
        "" if row["ratio"] is None else f"{row['ratio']:.2f}",
        f"{_short(row['least'])} to {_short(row['largest'])}" if row["runs"] > 1 else "",
        "" if target is None else f"{target} {shown}".rstrip(),
        {None: "", True: "reached", False: "**missed**"}[row["reached"]],
    )


def _short(number: float) -> str:
    return f"{number:.0f}" if number >= 100 or number == int(number) else f"{number:.3g}"


def _plots(curves: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    by_plot: dict[str, dict[str, tuple[tuple[float, float], ...]]] = {}
    for curve in curves:
        points = tuple((x, y) for x, y in curve["points"])
        by_plot.setdefault(curve["plot"], {})[curve["name"]] = points
    makers = {"latency": _latency, "growth": _growth, "merge": _merge}
    return {plot: makers[plot](lines) for plot, lines in by_plot.items()}


def _latency(curves: _Curves) -> str:
    """Distributions of an Admit; its floor is dashed in the same colour."""
    shown = {
        "Admit, five processes": "five processes",
        "Admit, one process": "one process",
        "Admit, 32 nodes all with CPUs, fragmented": "32 NUMA nodes",
        "Admit, 64 nodes all with CPUs, fragmented": "64 NUMA nodes",
    }
    lines = []
    for number, (name, short) in enumerate(shown.items()):
        if name in curves:
            lines.append(Line(name=short, points=curves[name], colour=number))
        if (floor := curves.get(f"{name}: floor")) and "process" in name:
            lines.append(Line(name=f"{short}: floor", points=floor, colour=number, dashed=True))
    return line_chart(
        "How long an Admit takes",
        Axis(title="percent of the admissions are no slower", marks=_percents()),
        Axis(title="ms", marks=decades(_heights(lines)), logarithmic=True),
        lines,
    )


def _growth(curves: _Curves) -> str:
    lines = [
        Line(name=name, points=points, colour=number)
        for number, (name, points) in enumerate(curves.items())
    ]
    highest = max(_heights(lines))
    step = next(step for step in (1, 2, 5, 10, 20, 50) if highest / step <= 10)
    marks = tuple(float(step * number) for number in range(int(highest / step) + 2))
    return line_chart(
        "Median of an Admit by pods on the node",
        Axis(title="pods on the node", marks=tuple(map(float, LEVELS)), logarithmic=True),
        Axis(title="ms", marks=marks),
        lines,
    )


def _merge(curves: _Curves) -> str:
    lines = [
        Line(
            name=name.removeprefix("fragmented, "),
            points=points,
            colour=int("closest" in name),
            dashed="p50" in name,
        )
        for name, points in curves.items()
        if name.startswith("fragmented")
    ]
    limits = tuple((float(nodes), limit) for nodes, limit in LIMITS.items())
    lines.append(Line(name="target for p99", points=limits, colour=4))
    return line_chart(
        "A merge of four resources, fragmented",
        Axis(title="NUMA nodes", marks=tuple(map(float, LIMITS)), logarithmic=True),
        Axis(title="ms", marks=decades(_heights(lines)), logarithmic=True),
        lines,
    )


def _percents() -> tuple[float, ...]:
    return (float(PERCENTS[0]), 20.0, 40.0, 60.0, 80.0, float(PERCENTS[-1]))


def _heights(lines: Sequence[Line]) -> list[float]:
    return [y for line in lines for _, y in line.points]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

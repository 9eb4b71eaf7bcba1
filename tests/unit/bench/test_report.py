"""What a run writes for programs."""

from __future__ import annotations

from tests.bench.figures import Curve, Figure, at_most_floors
from tests.bench.report import document
from tests.bench.spread import Row

MACHINE = {"kernel": "Linux 6.1"}


def row(part: str, name: str, value: float) -> Row:
    return Row(
        part, (Figure(name=name, unit="ms", value=value, floor=3.0, target=at_most_floors(2)),)
    )


def test_a_row_has_its_ratio_its_spread_and_its_verdict() -> None:
    written = document([row("five", "Admit", 4.0)], {"five": []}, MACHINE)

    assert written["rows"] == [
        {
            "part": "five",
            "name": "Admit",
            "unit": "ms",
            "value": 4.0,
            "floor": 3.0,
            "ratio": 1.333,
            "runs": 1,
            "of": "ratio",
            "least": 1.333,
            "largest": 1.333,
            "target": "≤ 2",
            "reached": True,
        }
    ]


def test_other_parts_of_a_file_stay() -> None:
    line = Curve(plot="growth", name="five", points=((10, 1.0),))
    before = document(
        [row("five", "Admit", 4.0), row("one", "in one", 5.0)],
        {"five": [line], "one": [line]},
        MACHINE,
    )
    after = document([row("five", "renamed", 6.0)], {"five": []}, MACHINE, before)

    rows, curves = after["rows"], after["curves"]
    assert isinstance(rows, list)
    assert isinstance(curves, list)
    assert [entry["name"] for entry in rows] == ["renamed", "in one"]
    assert [entry["part"] for entry in curves] == ["one"]

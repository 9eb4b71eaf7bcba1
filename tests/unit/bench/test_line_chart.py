"""Charts are well-formed, have every line, and put numbers where they belong."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from tests.bench.line_chart import Axis, Line, decades, line_chart

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("logarithmic", "number", "place"),
    [
        pytest.param(False, 1, 0.0, id="first mark"),
        pytest.param(False, 50.5, 0.5, id="middle"),
        pytest.param(True, 10, 0.5, id="middle of factors"),
        pytest.param(True, 100, 1.0, id="last mark"),
    ],
)
def test_where_a_number_is_on_an_axis(logarithmic: bool, number: float, place: float) -> None:
    axis = Axis(title="", marks=(1, 10, 100), logarithmic=logarithmic)
    assert axis.place(number) == pytest.approx(place)


@pytest.mark.parametrize(
    ("numbers", "marks"),
    [
        pytest.param([3, 40], (2, 5, 10, 20, 50), id="between marks"),
        pytest.param([1, 10], (1, 2, 5, 10), id="on marks"),
        pytest.param([0.3, 0.4], (0.2, 0.5), id="below one"),
    ],
)
def test_marks_enclose_the_numbers(numbers: list[float], marks: tuple[float, ...]) -> None:
    assert decades(numbers) == pytest.approx(marks)


def test_every_line_is_drawn_and_named() -> None:
    x = Axis(title="nodes & pods", marks=(8, 64), logarithmic=True)
    y = Axis(title="ms", marks=(0, 10))
    lines = [
        Line(name="p50 < p99", points=((8, 1), (64, 2)), colour=0, dashed=True),
        Line(name="p99", points=((8, 3), (64, 4)), colour=1),
    ]
    drawn = ET.fromstring(line_chart("A <title>", x, y, lines))

    texts = [text.text for text in drawn.iter(f"{SVG}text")]
    assert {"A <title>", "nodes & pods", "p50 < p99", "p99"} <= set(texts)
    classes = [line.get("class") for line in drawn.iter(f"{SVG}polyline")]
    assert classes.count("line c0 dashed") == classes.count("line c1") == 2

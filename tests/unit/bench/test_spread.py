"""What several runs come to."""

from __future__ import annotations

import pytest
from tests.bench.figures import (
    Curve,
    Figure,
    Target,
    at_least_floors,
    at_most,
    at_most_floors,
)
from tests.bench.spread import Row, curves_of, rows_of


def figure(value: float, floor: float | None = None, target: Target | None = None) -> Figure:
    return Figure(name="Admit", unit="ms", value=value, floor=floor, target=target)


def test_runs_come_to_their_medians_and_extremes() -> None:
    (row,) = rows_of("five", [[figure(10, 10)], [figure(30, 10)], [figure(24, 20)]])
    assert (row.value, row.floor, row.ratio) == (24, 10, 1.2)
    assert row.extremes == (1.0, 3.0)


def test_the_spread_is_that_of_the_number_with_the_target() -> None:
    target = at_most(25)
    (row,) = rows_of("merge", [[figure(10, 10, target)], [figure(30, 10, target)]])
    assert row.extremes == (10, 30)


@pytest.mark.parametrize(
    ("one", "reached"),
    [
        pytest.param(figure(10), None, id="no target"),
        pytest.param(figure(10, target=at_most(10)), True, id="at most, just"),
        pytest.param(figure(11, target=at_most(10)), False, id="at most, over"),
        pytest.param(figure(11, 10, at_most_floors(1.1)), True, id="floors, just"),
        pytest.param(figure(12, 10, at_most_floors(1.1)), False, id="floors, over"),
        pytest.param(figure(15, 10, at_least_floors(1.5)), True, id="at least, just"),
        pytest.param(figure(14, 10, at_least_floors(1.5)), False, id="at least, under"),
    ],
)
def test_whether_a_target_is_reached(one: Figure, reached: bool | None) -> None:
    assert Row("five", (one,)).reached is reached


def test_a_target_for_a_ratio_needs_a_floor() -> None:
    row = Row("five", (figure(10, target=at_most_floors(1)),))
    with pytest.raises(ValueError, match="no floor"):
        _ = row.reached


def test_points_of_a_curve_are_medians_over_the_runs() -> None:
    runs = [[Curve(plot="growth", name="five", points=((10, y), (100, 2 * y)))] for y in (3, 1, 2)]
    assert curves_of(runs) == [Curve(plot="growth", name="five", points=((10, 2), (100, 4)))]

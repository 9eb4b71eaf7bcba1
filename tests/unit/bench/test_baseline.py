"""Which rows count as worse than a baseline, and what a baseline is made of."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.baseline import (
    Entry,
    entries_of,
    read_baseline,
    regressions,
    unknown_rows,
    write_baseline,
)
from tests.bench.figures import Figure
from tests.bench.spread import Row


def row(name: str, *ratios: float, part: str = "five", more_is_better: bool = False) -> Row:
    """A row of times, one run for each ratio to a floor of 2 ms."""
    runs = tuple(
        Figure(name=name, unit="ms", value=2 * ratio, floor=2.0, more_is_better=more_is_better)
        for ratio in ratios
    )
    return Row(part, runs)


@pytest.mark.parametrize(
    ("before", "now", "is_worse"),
    [
        pytest.param([1.0], [1.0], False, id="the same"),
        pytest.param([1.0], [0.3], False, id="better"),
        pytest.param([1.0], [1.25], False, id="at the margin"),
        pytest.param([1.0], [1.26], True, id="beyond the margin"),
        pytest.param([0.9, 1.0, 1.1], [1.0, 1.2, 9.0], False, id="one run of three is slow"),
        pytest.param([0.9, 1.0, 1.1], [1.0, 1.3, 1.3], True, id="most runs are slow"),
        pytest.param([0.8, 1.0, 1.6], [1.5, 1.5, 1.5], False, id="as far as runs were apart"),
        pytest.param([0.8, 1.0, 1.6], [1.7, 1.7, 1.7], True, id="further than runs were apart"),
    ],
)
def test_a_row_is_worse_when_its_median_is(
    before: list[float], now: list[float], is_worse: bool
) -> None:
    entries = entries_of([row("Admit", *before)])
    found = regressions([row("Admit", *now)], entries, {"five"})
    assert [one.name for one in found] == (["Admit"] if is_worse else [])


@pytest.mark.parametrize(
    ("now", "is_worse"),
    [pytest.param(1.7, False, id="within"), pytest.param(1.5, True, id="too few")],
)
def test_fewer_is_worse_where_more_is_better(now: float, is_worse: bool) -> None:
    entries = entries_of([row("pods a second", 2.0, more_is_better=True)])
    found = regressions([row("pods a second", now, more_is_better=True)], entries, {"five"})
    assert bool(found) == is_worse


def test_times_without_a_floor_are_in_no_baseline_and_sizes_are() -> None:
    time = Row("start", (Figure(name="ready", unit="s", value=1.0),))
    size = Row("memory", (Figure(name="PSS", unit="MB", value=40.0, portable=True),))
    entries = entries_of([time, size])
    assert entries == {"PSS": Entry(part="memory", median=40.0, worst=40.0)}


def test_a_row_that_its_part_did_not_measure_fails_and_says_so() -> None:
    entries = entries_of([row("Admit", 1.0), row("other", 1.0, part="one")])
    (found,) = regressions([row("renamed", 1.0)], entries, {"five"})
    assert str(found) == "Admit: in the baseline, and not measured by part 'five'"


def test_a_row_without_an_entry_is_named_and_does_not_fail() -> None:
    rows = [row("Admit", 5.0)]
    assert regressions(rows, {}, {"five"}) == []
    assert unknown_rows(rows, {}) == ["Admit"]


def test_what_is_worse_is_told_with_its_limit() -> None:
    entries = entries_of([row("Admit", 0.8)])
    (found,) = regressions([row("Admit", 1.5)], entries, {"five"})
    assert str(found) == "Admit: 1.5, was 0.8, above the limit of 1"


def test_writing_one_part_leaves_the_others(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    both = entries_of([row("Admit", 1.0), row("gone", 1.0), row("all in one", 2.0, part="one")])
    write_baseline(path, both, {"five", "one"}, {"kernel": "Linux 6.1"})
    write_baseline(path, entries_of([row("Admit", 3.0)]), {"five"}, {"kernel": "Linux 6.1"})
    assert read_baseline(path) == {
        "Admit": Entry(part="five", median=3.0, worst=3.0),
        "all in one": Entry(part="one", median=2.0, worst=2.0),
    }


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[]", id="a list"),
        pytest.param("{}", id="no rows"),
        pytest.param('{"rows": {"Admit": {"median": 1}}}', id="a row without its worst"),
        pytest.param("no JSON", id="no JSON"),
    ],
)
def test_what_is_no_baseline_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="is no baseline"):
        read_baseline(path)

"""Rows of allowed differences: they allow exactly what they say, and must be needed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from numalign.replay.allowed import AllowedDifferences, Row, document_of, rows_of
from numalign.replay.compare import MISSING, Cause, Difference
from numalign.replay.recordings import RecordingError
from numalign.replay.report import Outcome, Result

CAUSE = Cause("TM-52", "it keeps what it has")


def found(*differences: Difference) -> Result:
    return Result(file="f", line=1, name="s", failures=differences)


def differs(step: int, recorded: object = 1, cause: Cause | None = CAUSE) -> Difference:
    return Difference(f".steps[{step}].expect.x", recorded, MISSING, cause)


def test_steps_that_follow_each_other_are_one_row() -> None:
    result = found(differs(1), differs(2), differs(4), differs(5, recorded=2))

    document = document_of([result])

    assert [row["steps"] for row in document["s"]] == ["1-2", "4", "5"]
    assert all("replayed" not in row for row in document["s"])
    judged = AllowedDifferences(rows_of(document)).judge(result)
    assert judged.outcome is Outcome.EXCUSED
    assert len(judged.excused) == 4


def test_what_has_no_cause_gets_no_row() -> None:
    assert document_of([found(differs(1, cause=None))]) == {}


ROW = Row(
    scenario="s", first=1, last=1, field="expect.x", recorded=1, replayed=MISSING,
    rule="TM-52", reason="it keeps what it has",
)  # fmt: skip


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(replace(ROW, recorded=2), id="other-value"),
        pytest.param(replace(ROW, rule="MEM-47"), id="other-rule"),
        pytest.param(replace(ROW, field="expect.y"), id="other-field"),
        pytest.param(replace(ROW, last=2), id="a-step-too-many"),
    ],
)
def test_a_row_that_does_not_fit_or_is_not_needed_fails(row: Row) -> None:
    assert AllowedDifferences([ROW]).judge(found(differs(1))).outcome is Outcome.EXCUSED
    assert AllowedDifferences([row]).judge(found(differs(1))).outcome is Outcome.FAILED


def test_a_row_of_a_scenario_without_differences_fails() -> None:
    judged = AllowedDifferences([ROW]).judge(found())

    assert [str(failure) for failure in judged.failures] == [
        '.steps[1].expect.x: "an allowed difference" recorded, "none" replayed'
    ]


def test_one_place_cannot_be_allowed_twice() -> None:
    with pytest.raises(RecordingError, match="allowed twice"):
        AllowedDifferences([ROW, ROW])


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(["s"], id="no-mapping"),
        pytest.param({"s": [{"steps": "1", "field": "x"}]}, id="no-rule"),
        pytest.param({"s": [{"steps": "1", "field": "x", "rule": "r", "z": 1}]}, id="other-key"),
    ],
)
def test_a_file_of_another_form_is_refused(document: object) -> None:
    with pytest.raises(RecordingError):
        rows_of(document)

"""What drivers' answers mean (DRA-22, DRA-30)."""

from __future__ import annotations

import pytest
from tests.unit.dra.dra_values import A, device, done, info, key

from numalign.dra.answers import Entry, judged

BATCH = (info("c1", A, d=()), info("c2", A, d=()))
CALL = "NodePrepareResources"


@pytest.mark.parametrize(
    ("entries", "finished", "text"),
    [
        pytest.param(
            {"u-c1": done(device("x")), "u-c2": done()}, ["c1", "c2"], None, id="all is well"
        ),
        pytest.param(
            {"u-c2": Entry("broken"), "u-c1": done()},
            ["c1"],
            "NodePrepareResources failed for ResourceClaim c2: broken",
            id="one of two",
        ),
        pytest.param(
            {"u-c1": Entry("late"), "u-c2": Entry("broken")},
            [],
            "NodePrepareResources failed for ResourceClaim c1: late",
            id="the first of two",
        ),
        pytest.param({}, [], "NodePrepareResources skipped 2 ResourceClaims", id="none"),
        pytest.param(
            {"u-c2": done()}, ["c2"], "NodePrepareResources skipped 1 ResourceClaims", id="too few"
        ),
        pytest.param(
            {"u-c1": done(), "u-c2": done(), "z": done()},
            ["c1", "c2"],
            "NodePrepareResources returned result for unknown claim UID z",
            id="too many",
        ),
        pytest.param(
            {"y": done(), "x": done()},
            [],
            "NodePrepareResources returned result for unknown claim UID x",
            id="DRA-T10",
        ),
    ],
)
def test_answers(entries: dict[str, Entry], finished: list[str], text: str | None) -> None:
    outcome = judged(CALL, BATCH, entries)

    assert sorted(k.name for k in outcome.done) == finished
    assert outcome.problem == text


def test_the_devices_are_those_of_the_answer() -> None:
    outcome = judged(CALL, BATCH[:1], {"u-c1": done(device("x"), device("y"))})

    assert [d.device for d in outcome.done[key("c1")]] == ["x", "y"]

"""Where explanations are put into words, and what is said where they cannot be."""

from __future__ import annotations

import threading

import pytest

from numalign.errors import Unavailable
from numalign.topology.wording import MOST_AT_ONCE, Explaining
from numalign.v1 import types_pb2 as pb


@pytest.mark.parametrize(
    ("merges", "at_once"),
    [
        pytest.param(0, True, id="none"),
        pytest.param(MOST_AT_ONCE, True, id="few"),
        pytest.param(MOST_AT_ONCE + 1, False, id="many"),
    ],
)
async def test_many_merges_are_looked_at_beside_the_event_loop(merges: int, at_once: bool) -> None:
    threads = []

    def words(elsewhere: str) -> pb.Explanation:
        threads.append(threading.current_thread())
        return pb.Explanation(summary=f"why, and {elsewhere}")

    explanation = await Explaining(words, merges).done("what else")

    assert explanation.summary == "why, and what else"
    assert [thread is threading.current_thread() for thread in threads] == [at_once]


@pytest.mark.parametrize("merges", [1, MOST_AT_ONCE + 1], ids=["at-once", "in-a-thread"])
async def test_a_decision_stands_that_cannot_be_explained(merges: int) -> None:
    def words(elsewhere: str) -> pb.Explanation:
        raise Unavailable(f"the facts are gone{elsewhere}")

    explanation = await Explaining(words, merges).done()

    assert explanation.summary == "Could not be explained: the facts are gone"

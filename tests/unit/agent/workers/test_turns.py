"""WRK-11, and the work queue of LOOP-5."""

from __future__ import annotations

from numalign_agent.workers.turns import StaticTurns
from numalign_agent.workers.work_queue import WorkQueue


def test_static_pods_of_one_name_take_turns() -> None:
    turns = StaticTurns()
    for uid in ("a", "b", "b", "c"):
        turns.arrive("web_default", uid)
    turns.arrive("other_default", "x")

    assert [turns.may_start("web_default", uid) for uid in "abc"] == [True, False, False]
    assert turns.may_start("other_default", "x")
    assert turns.leave("web_default", "b") is None  # it was not at its turn
    assert turns.leave("web_default", "a") == "c"
    assert turns.may_start("web_default", "c")
    assert turns.leave("web_default", "c") is None
    assert turns.leave("web_default", "c") is None


def test_due_is_strictly_in_the_past() -> None:
    """Trap 27."""
    queue = WorkQueue()
    queue.put("a", 5.0)
    queue.put("b", 7.0)
    queue.put("b", 4.0)
    queue.put("c", 1.0)
    queue.drop("c")

    assert queue.take_due(4.0) == ()
    assert queue.take_due(5.0) == ("b",)
    assert queue.take_due(5.1) == ("a",)
    assert queue.take_due(9.0) == ()

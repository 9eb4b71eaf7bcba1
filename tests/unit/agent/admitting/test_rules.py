"""Whose turn it is, in which order, and what an error means (ADD-1, DES-3, DES-11)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.agent.made import pod

from numalign_agent.admitting.order import by_creation, first_admissions, holds_new
from numalign_agent.admitting.trouble import Trouble, trouble_of
from numalign_agent.admitting.waiting import NOBODY, Waiting, WaitingList

RANKS = {"r1": 1, "r2": 2}


def head(waiting: WaitingList, now: float = 10.0, *, hold_new: bool = False) -> str | None:
    return next((entry.uid for entry in due(waiting, now, hold_new=hold_new, most=1)), None)


def due(
    waiting: WaitingList, now: float = 10.0, *, hold_new: bool = False, most: int = 99
) -> list[Waiting]:
    return waiting.due(RANKS, now, hold_new=hold_new, most=most)


def test_who_was_admitted_before_goes_first() -> None:
    waiting = NOBODY.added(["n1", "r2"], 0.0).added(["r1", "n2"], 1.0)
    order = []
    while (uid := head(waiting)) is not None:
        order.append(uid)
        waiting = waiting.without(uid)

    assert order == ["r1", "r2", "n1", "n2"]


@pytest.mark.parametrize("most", [1, 3, 4, 9])
def test_so_many_turns_are_next_and_no_more(most: int) -> None:
    waiting = NOBODY.added(["n1", "r2"], 0.0).added(["r1", "n2", "later"], 1.0)
    waiting = waiting.changed(replace(waiting.waiting["later"], not_before=20.0))

    assert [entry.uid for entry in due(waiting, most=most)] == ["r1", "r2", "n1", "n2"][:most]
    assert [entry.uid for entry in due(waiting, hold_new=True, most=most)] == ["r1", "r2"][:most]


def test_one_that_waits_keeps_its_place() -> None:
    waiting = NOBODY.added(["a", "b"], 0.0).added(["b", "a"], 1.0)

    assert head(waiting) == "a"
    assert head(waiting.without("a").added(["a"], 2.0)) == "b"


def test_one_that_is_put_off_lets_others_go_first_and_keeps_its_place() -> None:
    waiting = NOBODY.added(["a", "b"], 0.0)
    put_off = waiting.changed(replace(waiting.waiting["a"], not_before=20.0))

    assert head(put_off) == "b"
    assert head(put_off, 20.0) == "a"
    assert put_off.next_due(10.0) == 20.0
    assert put_off.next_due(20.0) is None
    assert head(put_off.woken("a")) == "a"
    assert head(put_off.woken("nobody")) == "b"


def test_room_wakes_those_who_wait_for_it() -> None:
    waiting = NOBODY.added(["a", "b"], 0.0)
    for uid, for_room in (("a", False), ("b", True)):
        entry = replace(waiting.waiting[uid], not_before=99.0, for_room=for_room)
        waiting = waiting.changed(entry)

    assert head(waiting) is None
    assert head(waiting.room_made()) == "b"


def test_new_pods_are_held() -> None:
    waiting = NOBODY.added(["n1", "r1"], 0.0)

    assert head(waiting, hold_new=True) == "r1"
    assert head(waiting.without("r1"), hold_new=True) is None


@given(st.lists(st.tuples(st.sampled_from(["add", "drop"]), st.sampled_from("abcdef"))))
def test_nobody_is_lost_and_nobody_is_there_twice(steps: list[tuple[str, str]]) -> None:
    waiting, expected = NOBODY, list[str]()
    for step, uid in steps:
        if step == "add":
            waiting = waiting.added([uid], 0.0)
            expected += [] if uid in expected else [uid]
        else:
            waiting = waiting.without(uid)
            expected = [other for other in expected if other != uid]
    taken = []
    while (first := head(waiting)) is not None:
        taken.append(first)
        waiting = waiting.without(first)

    assert taken == expected


def test_batches_are_sorted_by_creation() -> None:
    """ADD-1, trap 25: static pods have no creation time."""
    pods = [
        pod("new", created="2026-01-02T00:00:00Z"),
        pod("static", source="file"),
        pod("old", created="2026-01-01T00:00:00Z"),
        pod("twin", created="2026-01-01T00:00:00Z"),
    ]

    assert [each.name for each in by_creation(pods)] == ["static", "old", "twin", "new"]


def test_first_admissions_come_from_the_journal_and_then_from_the_record() -> None:
    assert first_admissions({"a": 3, "b": 7}, ["c", "a", "d"]) == {"a": 3, "b": 7, "c": 8, "d": 9}
    assert first_admissions({}, ["c", "d"]) == {"c": 1, "d": 2}


@pytest.mark.parametrize(
    ("lost", "presented", "ready", "waited", "holds"),
    [
        pytest.param(set(), set(), False, 0, False, id="nothing is lost"),
        pytest.param({"a"}, set(), False, 0, True, id="one is not back yet"),
        pytest.param({"a"}, {"a"}, False, 0, False, id="it is back"),
        pytest.param({"a"}, set(), True, 0, False, id="nobody else comes"),
        pytest.param({"a"}, set(), False, 30, False, id="not for ever, trap 21"),
    ],
)
def test_holding_new_pods(
    lost: set[str], presented: set[str], ready: bool, waited: float, holds: bool
) -> None:
    assert holds_new(lost, presented, sources_ready=ready, waited=waited) is holds


@pytest.mark.parametrize(
    ("code", "fields", "trouble"),
    [
        ("UNAVAILABLE", (), Trouble.SERVICE),
        ("DEADLINE_EXCEEDED", (), Trouble.SERVICE),
        ("PERMISSION_DENIED", (), Trouble.SERVICE),
        ("RESOURCE_EXHAUSTED", (), Trouble.POD),
        ("INTERNAL", (), Trouble.POD),
        ("UNKNOWN", (), Trouble.POD),
        ("INVALID_ARGUMENT", ("spec.containers[0].name",), Trouble.REFUSED),
        ("FAILED_PRECONDITION", ("spec.containers",), Trouble.REFUSED),
        ("FAILED_PRECONDITION", ("owner",), Trouble.POD),
        ("FAILED_PRECONDITION", ("node",), Trouble.NODE_UNKNOWN),
        ("FAILED_PRECONDITION", (), Trouble.POD),
    ],
)
def test_trouble(code: str, fields: tuple[str, ...], trouble: Trouble) -> None:
    assert trouble_of(code, fields) is trouble

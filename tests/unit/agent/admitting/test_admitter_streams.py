"""Pods that come at once are asked about together, and decided as if one after the other."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.agent.admitting.admission_double import (
    ADMITTED,
    deferred,
    down,
    rejected,
)
from tests.unit.agent.admitting.admitter_world import fast_fixture, world
from tests.unit.agent.made import pod

from numalign_agent.admitting import admitter as module

__all__ = ["fast_fixture"]

TOGETHER = ("together", "uid-a", "uid-b", "uid-c")
IN_ORDER = [("admitted", "uid-a"), ("admitted", "uid-b"), ("admitted", "uid-c")]


async def test_those_who_come_at_once_are_asked_about_together() -> None:
    async with world() as on:
        on.calls.streams = True
        on.calls.answers("uid-b", rejected())
        on.add("a", "b", "c")

        assert await on.decided() == [
            ("admitted", "uid-a"),
            ("rejected", "uid-b", "OutOfcpu", "too few"),
            ("admitted", "uid-c"),
        ]
        assert on.calls.asked == [TOGETHER]
        assert on.admitter.admitted == {"uid-a", "uid-c"}


@pytest.mark.parametrize(
    "first",
    [
        pytest.param([down(), down()], id="nobody-is-there"),
        pytest.param([deferred(0, "v1")], id="victims"),
    ],
)
async def test_the_first_without_an_answer_is_asked_about_by_itself(first: list[Any]) -> None:
    """And before those behind it, as if each had been asked about alone."""
    async with world() as on:
        on.calls.streams = True
        on.calls.answers("uid-b", *first)
        on.add("a", "b", "c")

        assert await on.decided() == IN_ORDER
        assert on.calls.asked[0] == TOGETHER
        assert on.calls.asked[1] == ("together", "uid-b", "uid-c")
        assert on.calls.admits() == ["uid-b"] * (len(first) + 1) + ["uid-c"]
        assert on.ended == [
            victim.pod_uid for one in first for victim in getattr(one, "victims", ())
        ]


async def test_one_that_is_put_off_holds_nobody_up_in_a_stream() -> None:
    async with world() as on:
        on.calls.streams = True
        on.calls.answers("uid-a", deferred(), ADMITTED)
        on.add("a", "b", "c")

        assert await on.decided() == [
            ("deferred", "uid-a", "NotYet"),
            ("admitted", "uid-b"),
            ("admitted", "uid-c"),
            ("admitted", "uid-a"),
        ]


async def test_so_many_are_asked_about_in_one_stream_and_no_more() -> None:
    async with world() as on:
        on.calls.streams = True
        names = [f"p{number:03}" for number in range(2 * module.MOST_TOGETHER + 1)]
        on.add(*names)

        assert await on.decided() == [("admitted", f"uid-{name}") for name in names]
        assert [len(asked) for asked in on.calls.asked] == [
            1 + module.MOST_TOGETHER,
            1 + module.MOST_TOGETHER,
            2,
        ]
        assert on.calls.asked[-1][0] == "admit"


async def test_one_that_is_not_asked_about_ends_what_is_asked_about_together() -> None:
    async with world() as on:
        on.calls.streams = True
        on.calls.held.clear()
        on.add("a")
        await on.until(lambda: bool(on.calls.asked))
        on.add("b", "c")
        on.add("ends", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
        on.add("d", "e")
        on.calls.held.set()
        await on.decided()

        assert on.calls.asked == [
            ("admit", "uid-a"),
            ("together", "uid-b", "uid-c"),
            ("together", "uid-d", "uid-e"),
        ]


async def test_a_removal_while_asked_about_together_releases_that_pod_alone() -> None:
    async with world() as on:
        on.calls.streams = True
        on.calls.held.clear()
        on.add("a", "b", "c")
        await on.until(lambda: bool(on.calls.asked))
        on.remove("b")
        on.calls.held.set()

        assert await on.decided() == [("admitted", "uid-a"), ("admitted", "uid-c")]
        assert on.calls.asked == [TOGETHER, ("release", "uid-b")]


@pytest.mark.parametrize("streams", [False, True], ids=["by-itself", "together"])
async def test_a_rejection_is_not_the_last_word_where_pods_left_while_it_was_made(
    streams: bool,
) -> None:
    async with world() as on:
        on.add("old")
        await on.decided()
        on.pods.remove(pod("old"))
        on.calls.streams = streams
        on.calls.held.clear()
        on.calls.answers("uid-new", rejected(), ADMITTED)
        on.add("new", "other")
        await on.until(lambda: len(on.calls.asked) > 1)
        on.admitter.released("uid-old")
        on.calls.held.set()

        assert sorted(await on.decided()) == [
            ("admitted", "uid-new"),
            ("admitted", "uid-old"),
            ("admitted", "uid-other"),
        ]

"""Getting pods their decisions: strict order, nobody lost, nobody rejected for an outage."""

from __future__ import annotations

import asyncio

import pytest
from grpc import StatusCode
from tests.unit.agent.admitting.admission_double import (
    ADMITTED,
    deferred,
    down,
    rejected,
    trouble,
)
from tests.unit.agent.admitting.admitter_world import fast_fixture, world
from tests.unit.agent.made import pod

__all__ = ["fast_fixture"]


async def test_one_at_a_time_in_order() -> None:
    async with world() as on:
        on.calls.held.clear()
        on.add("a", "b")
        on.add("c")
        await on.until(lambda: bool(on.calls.asked))
        await asyncio.sleep(0.01)
        assert on.calls.admits() == ["uid-a"]
        assert on.admitter.undecided == {"uid-a", "uid-b", "uid-c"}

        on.calls.held.set()
        assert await on.decided() == [
            ("admitted", "uid-a"),
            ("admitted", "uid-b"),
            ("admitted", "uid-c"),
        ]


async def test_admitted_before_goes_first_after_a_restart() -> None:
    async with world(b=2, c=1) as on:
        on.calls.listing.admissions.add(pod_uid="uid-c")
        on.calls.listing.admissions.add(pod_uid="uid-d")
        on.calls.listing.admissions.add(pod_uid="uid-b")
        on.add("a", "b", "c", "d")
        await on.decided()

        assert on.calls.admits() == ["uid-c", "uid-b", "uid-d", "uid-a"]


async def test_what_is_asked_about_again_goes_in_the_order_of_its_first_admission() -> None:
    async with world() as on:
        on.add("a", "b", "c")
        await on.decided()
        on.calls.asked.clear()
        on.add("new", "c", "a")
        await on.decided()

        assert on.calls.admits() == ["uid-a", "uid-c", "uid-new"]


async def test_new_pods_wait_for_those_whose_admission_was_lost() -> None:
    async with world(b=1) as on:
        on.sources_ready = False
        on.add("new")
        await asyncio.sleep(0.03)
        assert on.calls.asked == []

        on.add("b")
        await on.decided()
        assert on.calls.admits() == ["uid-b", "uid-new"]


@pytest.mark.parametrize("failures", [1, 4])
async def test_nobody_is_rejected_because_admission_is_down(failures: int) -> None:
    """DES-3, DES-12: and those behind wait."""
    async with world() as on:
        on.calls.failing.extend(down() for _ in range(failures))  # at the start, too
        on.calls.answers("uid-a", *(down() for _ in range(failures)))
        on.add("a", "b")

        assert await on.decided() == [("admitted", "uid-a"), ("admitted", "uid-b")]
        assert on.calls.admits() == ["uid-a"] * (failures + 1) + ["uid-b"]
        errors = 'numalign_agent_admission_errors_total{code="UNAVAILABLE"}'
        assert f"{errors} {2 * failures}.0" in on.metrics.text()


async def test_a_pod_that_cannot_be_judged_now_lets_others_go_first() -> None:
    async with world() as on:
        on.calls.answers("uid-a", trouble(StatusCode.INTERNAL))
        on.add("a", "b")

        assert await on.decided() == [("admitted", "uid-b"), ("admitted", "uid-a")]


@pytest.mark.parametrize(
    "error",
    [
        trouble(StatusCode.INVALID_ARGUMENT, "spec.containers"),
        trouble(StatusCode.FAILED_PRECONDITION, "spec.containers[0].image"),
    ],
)
async def test_a_pod_that_can_never_be_judged_is_rejected(error: Exception) -> None:
    async with world() as on:
        on.calls.answers("uid-a", error)  # type: ignore[arg-type]
        on.add("a")

        assert await on.decided() == [("rejected", "uid-a", "UnexpectedAdmissionError", "no")]


async def test_a_rejection_is_final() -> None:
    async with world() as on:
        on.calls.answers("uid-a", rejected())
        on.add("a", "b")

        assert await on.decided() == [
            ("rejected", "uid-a", "OutOfcpu", "too few"),
            ("admitted", "uid-b"),
        ]
        assert on.admitter.admitted == {"uid-b"}


async def test_a_deferred_pod_is_asked_again_and_others_go_first() -> None:
    async with world() as on:
        on.calls.answers("uid-a", deferred(), ADMITTED)
        on.add("a", "b")

        assert await on.decided() == [
            ("deferred", "uid-a", "NotYet"),
            ("admitted", "uid-b"),
            ("admitted", "uid-a"),
        ]


async def test_retry_after_is_kept_to() -> None:
    async with world() as on:
        on.calls.answers("uid-a", deferred(3600))
        on.add("a", "b")
        await on.until(lambda: ("admitted", "uid-b") in on.effects.seen)
        await asyncio.sleep(0.05)

        assert on.calls.admits() == ["uid-a", "uid-b"]
        on.admitter.wake("uid-a")
        await on.decided()
        assert on.calls.admits() == ["uid-a", "uid-b", "uid-a"]


async def test_victims_are_ended_and_named_when_the_pod_is_asked_about_again() -> None:
    """PRE-8, PRE-9: those behind wait."""
    async with world() as on:
        on.calls.answers("uid-a", deferred(0, "v1", "v2"), deferred(0, "v3"), ADMITTED)
        on.add("a", "b")
        await on.decided()

        assert on.ended == ["v1", "v2", "v3"]
        assert on.calls.asked == [
            ("admit", "uid-a"),
            ("admit", "uid-a", "v1", "v2"),
            ("admit", "uid-a", "v1", "v2", "v3"),
            ("admit", "uid-b"),
        ]


async def test_a_pod_that_is_removed_while_it_waits_is_never_asked_about() -> None:
    async with world() as on:
        on.calls.held.clear()
        on.add("a", "b", "c")
        await on.until(lambda: bool(on.calls.asked))
        on.remove("b")
        on.calls.held.set()
        await on.decided()

        assert on.calls.admits() == ["uid-a", "uid-c"]


@pytest.mark.parametrize("held", ["the answer", "the journal"])
async def test_a_removal_while_undecided_discards_the_answer_and_releases(held: str) -> None:
    """DES-13."""
    async with world() as on:
        gate = on.calls.held if held == "the answer" else on.effects.noting
        gate.clear()
        on.add("a")
        await on.until(lambda: bool(on.calls.asked))
        await asyncio.sleep(0.01)
        on.remove("a")
        gate.set()
        await on.until(lambda: ("release", "uid-a") in on.calls.asked)

        assert on.effects.seen == []
        assert on.admitter.admitted == frozenset()


async def test_a_pod_that_comes_back_while_its_answer_is_under_way_is_asked_about_anew() -> None:
    async with world() as on:
        on.calls.held.clear()
        on.add("a")
        await on.until(lambda: bool(on.calls.asked))
        on.remove("a")
        on.add("a")
        on.calls.held.set()

        assert await on.decided() == [("admitted", "uid-a")]
        assert on.calls.asked == [("admit", "uid-a"), ("release", "uid-a"), ("admit", "uid-a")]


async def test_a_pod_that_ends_is_not_asked_about() -> None:
    """ADM-9."""
    async with world() as on:
        on.add("a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})

        assert await on.decided() == [("not asked", "uid-a")]
        assert on.calls.asked == []


async def test_a_rejection_waits_while_pods_are_leaving() -> None:
    """A pod that no source wants any more still holds something until it has ended."""
    async with world() as on:
        on.add("old")
        await on.decided()
        on.pods.remove(pod("old"))
        on.calls.answers("uid-new", rejected(), rejected(), ADMITTED)
        on.add("new")
        await on.until(lambda: on.calls.admits().count("uid-new") >= 2)
        on.admitter.released("uid-old")

        assert await on.decided() == [("admitted", "uid-old"), ("admitted", "uid-new")]

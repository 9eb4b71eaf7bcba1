"""A provider's books: tentative, prepared, final, and what a restart makes of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.provider.ledger_world import (
    HINT,
    ListEngine,
    State,
    admission,
    commit,
    ledger_in,
    pod,
    prepare,
    told,
)

from numalign.errors import StateError, Unavailable
from numalign.model.hint import NO_HINT
from numalign.model.ids import PodUid
from numalign.provider.cleanup import LazyCleanup
from numalign.provider.ledger import Ledger
from numalign.provider.values import AllocationFailure

A = pod("a")
C = A.containers[0]


async def stored(directory: Path) -> State:
    """What a restart finds, before anybody told it anything."""
    async with ledger_in(directory) as (ledger, _):
        return ledger.state


async def test_tentative_is_in_no_answer_and_in_no_file(tmp_path: Path) -> None:
    async with ledger_in(tmp_path) as (ledger, _):
        await ledger.allocate(admission(1), A, C, HINT, last=False, dry_run=False)
        assert ledger.state == ()
        assert ledger.basis(admission(1)) == ("a",)
        assert ledger.basis(admission(2)) == ()
    assert await stored(tmp_path) == ()


async def test_a_dry_run_is_never_prepared_nor_sealed(tmp_path: Path) -> None:
    engine = ListEngine()
    async with ledger_in(tmp_path, engine) as (ledger, _):
        outcome = await ledger.allocate(admission(1), A, C, HINT, last=True, dry_run=True)
        assert outcome.state == ("a",)
        assert ledger.state == ()
        assert ledger.settled
    assert engine.sealed == []


@pytest.mark.parametrize(
    ("uid", "seal_failure"),
    [
        pytest.param("refused", None, id="allocation-fails"),
        pytest.param("a", AllocationFailure("plugin"), id="seal-fails"),
    ],
)
async def test_a_failure_is_not_prepared(
    tmp_path: Path, uid: str, seal_failure: AllocationFailure | None
) -> None:
    engine = ListEngine(seal_failure=seal_failure)
    made = pod(uid)
    async with ledger_in(tmp_path, engine) as (ledger, _):
        outcome = await ledger.allocate(admission(1), made, C, HINT, last=True, dry_run=False)
        assert outcome.failure is not None
        assert ledger.settled
        await ledger.abort(admission(1), keep=False)
    assert await stored(tmp_path) == ()


async def test_abort_restores_what_was_there(tmp_path: Path) -> None:
    async with ledger_in(tmp_path) as (ledger, _):
        await commit(ledger, 1, "a")
        await prepare(ledger, 2, "b")
        assert list(ledger.state) == ["a", "b"]
        await ledger.abort(admission(2), keep=False)
        assert list(ledger.state) == ["a"]
    assert await stored(tmp_path) == ("a",)


async def test_leftovers_stay_where_they_are_kept(tmp_path: Path) -> None:
    async with ledger_in(tmp_path) as (ledger, _):
        await ledger.allocate(admission(1), A, C, HINT, last=False, dry_run=False)
        await ledger.abort(admission(1), keep=True)
        await prepare(ledger, 2, "b")
        await ledger.abort(admission(2), keep=True)
        assert ledger.state == ("a", "b")
    assert await stored(tmp_path) == ("a", "b")


async def test_a_pod_refused_before_it_was_asked_about_is_active_no_more(tmp_path: Path) -> None:
    cleanup: LazyCleanup[State] = LazyCleanup()
    async with ledger_in(tmp_path, cleanup=cleanup) as (ledger, _):
        await told(ledger, active=("a", "b"))
        # Judged again, and refused by a provider that was asked earlier.
        await ledger.abort(admission(1), keep=True, pod_uid=PodUid("a"))
        assert set(cleanup.sources().active or ()) == {"b"}
        await ledger.abort(admission(2), keep=False, pod_uid=PodUid("b"))
        assert set(cleanup.sources().active or ()) == {"b"}


@pytest.mark.parametrize(
    ("committed", "left"),
    [pytest.param((1,), ("a",), id="dropped"), pytest.param((1, 2), ("a", "b"), id="committed")],
)
async def test_a_restart_in_doubt_waits_to_be_told(
    tmp_path: Path, committed: tuple[int, ...], left: State
) -> None:
    async with ledger_in(tmp_path) as (ledger, _):
        await commit(ledger, 1, "a")
        await prepare(ledger, 2, "b")
    async with ledger_in(tmp_path) as (ledger, _):
        for refused in (
            ledger.hints(admission(3), A, C),
            ledger.allocate(admission(3), A, C, HINT, last=True, dry_run=False),
            ledger.release([PodUid("a")]),
            ledger.add_container(A, C),
            ledger.remove_container(PodUid("a"), "c"),
            ledger.prepare_container(A, C, NO_HINT),
        ):
            with pytest.raises(Unavailable, match="waits to be told"):
                await refused
        assert await told(ledger, *committed, active=("a", "b")) == left
        await commit(ledger, 3, "c")
    assert await stored(tmp_path) == tuple(sorted({*left, "c"}))


async def test_an_outcome_reaches_a_restarted_ledger(tmp_path: Path) -> None:
    async with ledger_in(tmp_path) as (ledger, _):
        await prepare(ledger, 1, "a")
    async with ledger_in(tmp_path) as (ledger, _):
        await ledger.abort(admission(1), keep=False)
        assert await told(ledger, active=("a",)) == ()
    assert await stored(tmp_path) == ()


async def test_pods_that_the_picture_lacks_are_released(tmp_path: Path) -> None:
    async with ledger_in(tmp_path) as (ledger, _):
        await commit(ledger, 1, "a")
        await commit(ledger, 2, "b")
        assert await told(ledger, 1, 2, active=("b",)) == ("b",)
    assert await stored(tmp_path) == ("b",)


async def test_a_late_call_cannot_open_what_is_over(tmp_path: Path) -> None:
    async with ledger_in(tmp_path) as (ledger, _):
        await ledger.abort(admission(1), keep=False)
        await prepare(ledger, 2, "b")
        for over in (1, 2):
            with pytest.raises(Unavailable, match="is over"):
                await ledger.hints(admission(over), A, C)
        await ledger.commit(admission(2))
        with pytest.raises(Unavailable, match="is over"):
            await ledger.hints(admission(2), A, C)
        await ledger.hints(admission(3), A, C)
        await told(ledger, 2, active=("b",))
        with pytest.raises(Unavailable, match="is over"):
            await ledger.allocate(admission(3), A, C, HINT, last=True, dry_run=False)
        assert ledger.state == ("b",)


async def test_another_admission_ends_one_that_was_never_prepared(tmp_path: Path) -> None:
    async with ledger_in(tmp_path) as (ledger, _):
        await ledger.allocate(admission(1), A, C, HINT, last=False, dry_run=False)
        await commit(ledger, 2, "b")
        assert ledger.state == ("b",)
        with pytest.raises(Unavailable, match="is over"):
            await ledger.allocate(admission(1), A, C, HINT, last=True, dry_run=False)


async def cancel_midway(work: asyncio.Task[object]) -> None:
    """Give up as soon as the file is being written."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


async def test_a_preparation_given_up_can_still_be_taken_back(tmp_path: Path) -> None:
    async with ledger_in(tmp_path) as (ledger, _):
        await commit(ledger, 1, "a")
        await cancel_midway(asyncio.ensure_future(prepare(ledger, 2, "b")))
        await ledger.abort(admission(2), keep=False)
        await commit(ledger, 3, "c")
    async with ledger_in(tmp_path) as (ledger, _):
        # What nobody took back would be found here, and take c along with it.
        assert await told(ledger, 1, 3, active=("a", "c")) == ("a", "c")


async def test_a_release_given_up_is_the_same_in_memory_and_file(tmp_path: Path) -> None:
    async with ledger_in(tmp_path) as (ledger, _):
        await commit(ledger, 1, "a")
        await cancel_midway(asyncio.ensure_future(ledger.release([PodUid("a")])))
        in_memory = ledger.state
    assert await stored(tmp_path) == in_memory


async def test_a_file_that_refuses_takes_the_change_back(tmp_path: Path) -> None:
    async with ledger_in(tmp_path) as (ledger, database):
        await commit(ledger, 1, "a")
        await database.close()
        with pytest.raises(StateError):
            await prepare(ledger, 2, "b")
        assert ledger.state == ("a",)
        assert ledger.settled
        with pytest.raises(StateError):
            await ledger.release([PodUid("a")])
        assert ledger.state == ("a",)


async def test_watchers_hear_of_outcomes(tmp_path: Path) -> None:
    async with ledger_in(tmp_path) as (ledger, _):
        seen = ledger.revision
        waiting = asyncio.ensure_future(ledger.wait_settled(seen))
        await prepare(ledger, 1, "a")
        await asyncio.sleep(0.01)
        assert not waiting.done()
        await ledger.commit(admission(1))
        assert await asyncio.wait_for(waiting, 60) > seen


async def walk(ledger: Ledger[State], ends: list[str]) -> set[str]:
    """Admissions one after another, each with its end; who is in afterwards."""
    inside: set[str] = set()
    for number, end in enumerate(ends):
        uid = f"pod{number}"
        if end == "dry-run":
            made = pod(uid)
            await ledger.allocate(admission(number), made, C, HINT, last=True, dry_run=True)
        else:
            await prepare(ledger, number, uid)
        if end == "commit":
            await ledger.commit(admission(number))
            inside.add(uid)
        else:
            await ledger.abort(admission(number), keep=False)
    return inside


@given(ends=st.lists(st.sampled_from(("commit", "abort", "dry-run")), max_size=8))
@settings(max_examples=30, deadline=None)
def test_only_committed_admissions_count(
    tmp_path_factory: pytest.TempPathFactory, ends: list[str]
) -> None:
    async def run() -> None:
        directory = tmp_path_factory.mktemp("ledger")
        async with ledger_in(directory) as (ledger, _):
            inside = await walk(ledger, ends)
            assert set(ledger.state) == inside
        assert set(await stored(directory)) == inside

    asyncio.run(run())

"""The ledger and an admission of several pods."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.provider.ledger_world import (
    HINT,
    ListEngine,
    State,
    admission,
    ledger_in,
    pod,
    told,
)

from numalign.errors import Unavailable
from numalign.model.ids import PodUid
from numalign.provider.ledger import Ledger
from numalign.provider.values import AllocationFailure

GROUP = admission(1)


async def take(ledger: Ledger[State], uid: str) -> AllocationFailure | None:
    """Carry one pod of the group to its last allocation."""
    made = pod(uid)
    await ledger.hints(GROUP, made, made.containers[0])
    outcome = await ledger.allocate(
        GROUP, made, made.containers[0], HINT, last=True, dry_run=False, group=True
    )
    return outcome.failure


async def test_pods_of_a_group_see_each_other_and_are_in_no_answer_before_they_are_prepared(
    tmp_path: Path,
) -> None:
    async with ledger_in(tmp_path) as (ledger, _):
        await take(ledger, "a")
        await take(ledger, "b")

        before = ledger.state
        assert ledger.basis(GROUP) == ("a", "b")

        await ledger.prepare(GROUP)

        assert before == ()
        assert ledger.state == ("a", "b")
        assert not ledger.settled


async def test_a_group_is_committed_as_one(tmp_path: Path) -> None:
    async with ledger_in(tmp_path) as (ledger, _):
        await take(ledger, "a")
        await take(ledger, "b")
        await ledger.prepare(GROUP)

        await ledger.commit(GROUP)

        assert ledger.settled
    async with ledger_in(tmp_path) as (ledger, _):
        assert ledger.state == ("a", "b")


@pytest.mark.parametrize("prepared", [True, False], ids=["prepared", "tentative"])
async def test_a_group_is_aborted_as_one(tmp_path: Path, prepared: bool) -> None:
    async with ledger_in(tmp_path) as (ledger, _):
        await take(ledger, "a")
        await take(ledger, "b")
        if prepared:
            await ledger.prepare(GROUP)

        await ledger.abort(GROUP, keep=False)

        assert ledger.state == ()
        assert ledger.settled


@pytest.mark.parametrize(
    ("committed", "kept"), [((1,), ("a", "b")), ((), ())], ids=["committed", "not"]
)
async def test_a_group_in_doubt_ends_as_one(
    tmp_path: Path, committed: tuple[int, ...], kept: State
) -> None:
    async with ledger_in(tmp_path) as (ledger, _):
        await take(ledger, "a")
        await take(ledger, "b")
        await ledger.prepare(GROUP)
    async with ledger_in(tmp_path) as (ledger, _):
        assert await told(ledger, *committed, active=("a", "b")) == kept


async def test_the_last_pod_alone_can_leave(tmp_path: Path) -> None:
    async with ledger_in(tmp_path) as (ledger, _):
        await take(ledger, "a")
        await take(ledger, "b")

        await ledger.leave(GROUP, PodUid("b"))
        await take(ledger, "c")
        await ledger.prepare(GROUP)

        assert ledger.state == ("a", "c")


@pytest.mark.parametrize("uid", ["a", "unknown"])
async def test_no_other_pod_can_leave(tmp_path: Path, uid: str) -> None:
    async with ledger_in(tmp_path) as (ledger, _):
        await take(ledger, "a")
        await take(ledger, "b")

        await ledger.leave(GROUP, PodUid(uid))

        assert ledger.basis(GROUP) == ("a", "b")


async def test_a_pod_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    async with ledger_in(tmp_path) as (ledger, _):
        await take(ledger, "a")

        assert await take(ledger, "refused") is not None
        await ledger.leave(GROUP, PodUid("refused"))
        await ledger.prepare(GROUP)

        assert ledger.state == ("a",)


async def test_every_pod_is_sealed_before_the_group_is_prepared(tmp_path: Path) -> None:
    engine = ListEngine()
    async with ledger_in(tmp_path, engine) as (ledger, _):
        await take(ledger, "a")
        await take(ledger, "b")

        assert engine.sealed == ["a", "b"]
        assert ledger.state == ()


async def test_only_an_open_group_can_be_prepared(tmp_path: Path) -> None:
    async with ledger_in(tmp_path) as (ledger, _):
        await take(ledger, "a")
        await ledger.abort(GROUP, keep=False)

        with pytest.raises(Unavailable, match="is not open"):
            await ledger.prepare(GROUP)

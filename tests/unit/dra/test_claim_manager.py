"""Preparing and giving back, over a real state file and drivers that misbehave."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest
from tests.unit.dra.claims_world import Plugin, Registered, opened
from tests.unit.dra.dra_values import A, B, info, key

from numalign.dra.answers import Entry
from numalign.dra.driver_connection import DriverFailed
from numalign.dra.values import ClaimProblem

GONE = DriverFailed("rpc error: code = Unavailable desc = gone")


async def test_prepared_once_for_two_pods_and_given_back_by_the_last(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        (container,) = await world.prepare("c1", "c2")
        await world.prepare("c2", uid=B)
        await world.manager.unprepare(A)
        await world.manager.unprepare(A)
        await world.manager.unprepare(B)

    assert container.cdi_names == ("d/x=u-c1", "d/x=u-c2")
    assert world.drivers["d"].asked == [
        ("prepare", ["u-c1", "u-c2"]),
        ("unprepare", ["u-c1"]),
        ("unprepare", ["u-c2"]),
    ]
    assert world.book.claims == {}


async def test_two_pods_at_once_have_a_claim_prepared_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        await asyncio.gather(world.prepare("c1", "c2"), world.prepare("c2", "c1", uid=B))

    assert world.drivers["d"].asked == [("prepare", ["u-c1", "u-c2"])]


async def test_a_driver_that_hangs_holds_up_only_who_shares_its_claims(tmp_path: Path) -> None:
    drivers = Registered(d=Plugin(), e=Plugin())
    drivers["d"].waits = asyncio.Event()
    async with opened(tmp_path, drivers) as world:
        hanging = asyncio.create_task(world.prepare("c1"))
        await asyncio.sleep(0)
        await asyncio.wait_for(world.prepare("c2", uid=B, drivers=("e",)), 60)
        drivers["d"].waits.set()
        await hanging


@pytest.mark.parametrize(
    ("answers", "extra", "text"),
    [
        pytest.param(
            {"u-c1": None}, {}, "NodePrepareResources skipped 1 ResourceClaims", id="too few"
        ),
        pytest.param(
            {"u-c1": None},
            {"x": Entry()},
            "NodePrepareResources returned result for unknown claim UID x",
            id="wrong",
        ),
        pytest.param(
            {"u-c1": Entry("no")},
            {},
            "NodePrepareResources failed for ResourceClaim c1: no",
            id="one of several",
        ),
    ],
)
async def test_what_is_done_is_not_asked_for_again(
    tmp_path: Path, answers: dict[str, Entry | None], extra: dict[str, Entry], text: str
) -> None:
    async with opened(tmp_path) as world:
        plugin = world.drivers["d"]
        plugin.answers, plugin.extra = dict(answers), dict(extra)
        problem = await world.problem("c1", "c2")
        plugin.answers, plugin.extra = {}, {}
        (container,) = await world.prepare("c1", "c2")

    assert problem == text
    assert plugin.asked == [("prepare", ["u-c1", "u-c2"]), ("prepare", ["u-c1"])]
    assert container.cdi_names == ("d/x=u-c1", "d/x=u-c2")


async def test_one_of_two_drivers_fails(tmp_path: Path) -> None:
    """The devices of the other are not there twice afterwards (DRA-T3)."""
    drivers = Registered(d=Plugin(), e=Plugin())
    drivers["e"].fails = GONE
    async with opened(tmp_path, drivers) as world:
        problem = await world.problem("c1", drivers=("d", "e"))
        drivers["e"].fails = None
        (container,) = await world.prepare("c1", drivers=("d", "e"))
        drivers["d"].fails = GONE
        with pytest.raises(ClaimProblem, match="NodeUnprepareResources: rpc error"):
            await world.manager.unprepare(A)
        kept = dict(world.book.claims)
        drivers["d"].fails = None
        await world.manager.unprepare(A)

    assert problem == "NodePrepareResources: rpc error: code = Unavailable desc = gone"
    assert container.cdi_names == ("d/x=u-c1",)
    assert list(kept[key("c1")].pods) == [A]
    assert [len(plugin.asked) for plugin in drivers.values()] == [3, 3]
    assert world.book.claims == {}


async def test_no_claim_is_taken_when_a_later_one_is_refused(tmp_path: Path) -> None:
    """DRA-T20."""
    async with opened(tmp_path) as world:
        problem = await world.problem("c1", "c2", drivers=("d", "missing"))

    assert problem == "DRA driver missing is not registered"
    assert world.book.claims == {}


async def test_what_was_prepared_is_after_a_restart(tmp_path: Path) -> None:
    """DRA-T8, DRA-T3: neither the mark nor the devices change, and no driver is asked."""
    async with opened(tmp_path) as first:
        await first.prepare("c1")
    async with opened(tmp_path) as second:
        (container,) = await second.prepare("c1", uid=B)
        page = second.metrics.text()

    assert second.drivers["d"].asked == []
    assert container.cdi_names == ("d/x=u-c1",)
    assert 'dra_resource_claims_in_use{driver_name="<any>"} 1.0' in page
    assert 'dra_resource_claims_in_use{driver_name="d"} 1.0' in page


async def test_after_a_boot_everything_is_prepared_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as first:
        await first.prepare("c1")
    async with opened(tmp_path, boot="boot-2") as second:
        before = second.metrics.text()
        (container,) = await second.prepare("c1")

    assert 'dra_resource_claims_in_use{driver_name="<any>"} 0.0' in before
    assert second.drivers["d"].asked == [("prepare", ["u-c1"])]
    assert container.cdi_names == ("d/x=u-c1",)


async def test_a_crash_before_the_answer_leaves_nothing_behind(tmp_path: Path) -> None:
    """The claim may be prepared: it is given back, though nobody ever said that it was."""
    drivers = Registered(d=Plugin())
    drivers["d"].waits = asyncio.Event()
    async with opened(tmp_path, drivers) as first:
        preparing = asyncio.create_task(first.prepare("c1"))
        while not drivers["d"].asked:  # noqa: ASYNC110 - no event says it
            await asyncio.sleep(0.001)
        preparing.cancel()
        await asyncio.gather(preparing, return_exceptions=True)
    async with opened(tmp_path) as second:
        await second.manager.unprepare(A)

    assert second.drivers["d"].asked == [("unprepare", ["u-c1"])]
    assert second.book.claims == {}


async def test_what_changes_nothing_is_not_written(tmp_path: Path) -> None:
    """DRA-T6."""
    async with opened(tmp_path) as world:
        await world.prepare("c1")
        before = revision(tmp_path)
        await world.prepare("c1")
        await world.prepare(uid=B)
        await world.manager.unprepare(B)

        assert revision(tmp_path) == before


async def test_a_pod_without_a_made_claim_can_end(tmp_path: Path) -> None:
    """DRA-T19: what is not prepared needs no unpreparing."""
    async with opened(tmp_path) as world:
        await world.manager.unprepare(A)

    assert world.drivers["d"].asked == []


async def test_reconciling_gives_back_what_pods_left(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        await world.prepare("c1")
        await world.prepare("c2", uid=B)
        early = await world.manager.reconcile({B}, 0, ())
        late = await world.manager.reconcile({B}, 1, ())
        world.drivers["d"].answers = {"u-c2": Entry("busy")}
        problems = await world.manager.reconcile((), 1, ())

    assert (early, late) == ((), ())
    (problem,) = problems
    assert problem == (
        "pod b: unprepare dynamic resources: NodeUnprepareResources failed for ResourceClaim c2: "
        "busy"
    )
    assert world.drivers["d"].asked[-2:] == [("unprepare", ["u-c1"]), ("unprepare", ["u-c2"])]


async def test_an_unreadable_state_is_taken_from_the_record(tmp_path: Path) -> None:
    async with opened(tmp_path) as first:
        await first.prepare("c1")
    with sqlite3.connect(tmp_path / "dra.db") as connection:
        connection.execute("UPDATE snapshot SET payload = X'7B7B'")
    connection.close()
    async with opened(tmp_path) as second:
        await second.manager.reconcile({A}, 9, [info("c1", A, d=())])
        await second.manager.unprepare(A)

    assert len(second.book.reports) == 1
    assert "stored resource claims cannot be read" in second.book.reports[0]
    assert second.drivers["d"].asked == [("unprepare", ["u-c1"])]


async def test_a_driver_that_is_not_there_keeps_its_word(tmp_path: Path) -> None:
    """A claim that could not be given back is used by the next pod as it is."""
    async with opened(tmp_path) as world:
        await world.prepare("c1")
        plugin = world.drivers.pop("d")
        with pytest.raises(ClaimProblem, match="DRA driver d is not registered"):
            await world.manager.unprepare(A)
        await world.prepare("c1", uid=B)
        world.drivers["d"] = plugin
        await world.manager.unprepare(A)
        await world.manager.unprepare(B)

    assert plugin.asked == [("prepare", ["u-c1"]), ("unprepare", ["u-c1"])]


async def test_a_pod_that_ends_while_it_is_prepared_leaves_nothing_behind(tmp_path: Path) -> None:
    async with opened(tmp_path) as world:
        plugin = world.drivers["d"]
        plugin.waits = asyncio.Event()
        preparing = asyncio.create_task(world.prepare("c1", "c2"))
        while not plugin.asked:  # noqa: ASYNC110 - no event says it
            await asyncio.sleep(0.001)
        ending = asyncio.create_task(world.manager.unprepare(A))
        await asyncio.sleep(0.01)
        plugin.waits.set()
        await preparing
        await ending

    assert plugin.asked == [("prepare", ["u-c1", "u-c2"]), ("unprepare", ["u-c1", "u-c2"])]
    assert world.book.claims == {}


def revision(directory: Path) -> int:
    connection = sqlite3.connect(directory / "dra.db")
    try:
        (found,) = connection.execute("SELECT revision FROM snapshot").fetchone()
        return int(found)
    finally:
        connection.close()

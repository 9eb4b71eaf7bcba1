"""The record of admitted pods: revisions, watches, and what a restart finds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from numalign.errors import InvalidInput, NotFound, RevisionTooOld
from numalign.model.ids import AdmissionId, PodUid
from numalign.model.revision import first_of_record
from numalign.store.admission_store import AdmissionStore
from numalign.store.database import Database
from numalign.topology.records import Admitted, Records
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb


@asynccontextmanager
async def records_in(directory: Path, history: int = 100, begin: int = 0) -> AsyncIterator[Records]:
    """The records over a state file; opened again, they are those of a restarted service."""
    database = Database.open(directory, "topology", report=print)
    try:
        store = AdmissionStore(database)
        yield Records(store, await store.begin(begin), history)
    finally:
        await database.close()


def admitted(uid: str, cpus: str = "1", number: int = 1) -> Admitted:
    message = pb.AdmissionRecord(
        pod_uid=uid, allocations=[pb.ContainerAllocation(container="c", cpus=cpus)]
    )
    return Admitted(AdmissionId(f"{uid}-{number}"), b"pod", message)


async def seen(records: Records, from_revision: int, count: int) -> list[str]:
    """The first events of a watch, as `kind what @revision`."""
    events: list[str] = []
    async with asyncio.timeout(60):
        async for event in records.watch(from_revision):
            events.append(told(event))
            if len(events) == count:
                break
    return events


def told(event: ad.WatchAssignmentsResponse) -> str:
    kind = event.WhichOneof("event")
    what = {
        "existing": event.existing.pod_uid,
        "changed": event.changed.pod_uid,
        "released": event.released.pod_uid,
        "shared_cpus": event.shared_cpus.cpus,
        "unhealthy_devices": ",".join(d.id for d in event.unhealthy_devices.devices),
    }.get(str(kind), "")
    return f"{kind} {what}@{event.revision}"


async def test_every_change_has_a_revision_of_its_own(tmp_path: Path) -> None:
    async with records_in(tmp_path) as records:
        numbered = await records.admit(admitted("a"))
        assert numbered.message.revision == records.revision == 1
        await records.admit(admitted("b"))
        await records.share("0-3")
        await records.share("0-3")
        await records.release([PodUid("a"), PodUid("nobody")])
        assert records.revision == 4
        assert [each.pod_uid for each in records.all()] == ["b"]
        with pytest.raises(NotFound, match='pod "a" is not admitted'):
            records.require(PodUid("a"))


async def test_a_restart_finds_what_was_recorded(tmp_path: Path) -> None:
    async with records_in(tmp_path) as records:
        await records.admit(admitted("a"))
        await records.admit(admitted("b"))
        await records.change(admitted("b", cpus="2"))
        await records.add_container("id-a", PodUid("a"), "c")
        await records.add_container("id-b", PodUid("b"), "c")
        await records.release([PodUid("a")])
        revision = records.revision
        expected = records.all()
    async with records_in(tmp_path) as records:
        assert records.all() == expected
        assert records.all()[0].message.allocations[0].cpus == "2"
        assert records.containers() == (("id-b", "b", "c"),)
        assert records.revision >= revision
        assert (await records.admit(admitted("c"))).message.revision > revision


async def test_a_watch_begins_with_what_is_there(tmp_path: Path) -> None:
    async with records_in(tmp_path) as records:
        await records.admit(admitted("a"))
        await records.share("0-3")
        events = asyncio.ensure_future(seen(records, 0, 5))
        await asyncio.sleep(0)
        await records.admit(admitted("b"))
        await records.release([PodUid("a")])
        assert await events == [
            "existing a@2",
            "shared_cpus 0-3@2",
            "synced @2",
            "changed b@3",
            "released a@4",
        ]


async def test_a_watch_goes_on_where_it_was(tmp_path: Path) -> None:
    async with records_in(tmp_path) as records:
        for uid in ("a", "b", "c"):
            await records.admit(admitted(uid))
        assert await seen(records, 1, 2) == ["changed b@2", "changed c@3"]
        later = asyncio.ensure_future(seen(records, 3, 1))
        await asyncio.sleep(0)
        await records.release([PodUid("b")])
        assert await later == ["released b@4"]


@pytest.mark.parametrize(
    ("from_revision", "text"),
    [
        pytest.param(1, "changes after 1 are no longer kept", id="too-old"),
        pytest.param(99, "99 is in the future", id="future"),
    ],
)
async def test_a_watch_from_nowhere_is_refused(
    tmp_path: Path, from_revision: int, text: str
) -> None:
    async with records_in(tmp_path, history=2) as records:
        for uid in ("a", "b", "c", "d"):
            await records.admit(admitted(uid))
        with pytest.raises(RevisionTooOld, match=text):
            await seen(records, from_revision, 1)
        assert await seen(records, 2, 2) == ["changed c@3", "changed d@4"]


@pytest.mark.parametrize(
    ("lost", "began"), [pytest.param(7, 8, id="lower"), pytest.param(8, 7, id="higher")]
)
async def test_a_revision_of_a_lost_record_is_of_no_use(
    tmp_path: Path, lost: int, began: int
) -> None:
    """Not even once the record that followed has come further than the lost one had."""
    async with records_in(tmp_path, begin=first_of_record(began)) as records:
        for uid in ("a", "b", "c"):
            await records.admit(admitted(uid))
        seen_before = first_of_record(lost) + 2

        with pytest.raises(
            RevisionTooOld, match=r"record of admitted pods, which was lost.* from 0"
        ):
            await seen(records, seen_before, 1)
        with pytest.raises(InvalidInput, match=r"take the revision of ListAdmissions"):
            records.require_past("as_of_revision", seen_before)
        records.require_past("as_of_revision", first_of_record(began) + 2)
        records.require_past("as_of_revision", 0)


async def test_history_does_not_reach_back_over_a_restart(tmp_path: Path) -> None:
    async with records_in(tmp_path) as records:
        await records.admit(admitted("a"))
        await records.admit(admitted("b"))
    async with records_in(tmp_path) as records:
        with pytest.raises(RevisionTooOld):
            await seen(records, 1, 1)


async def test_a_watcher_that_is_overtaken_is_told(tmp_path: Path) -> None:
    async with records_in(tmp_path, history=2) as records:
        watch = records.watch(0)
        assert told(await anext(watch)) == "synced @0"
        for uid in ("a", "b", "c"):
            await records.admit(admitted(uid))
        with pytest.raises(RevisionTooOld):
            await anext(watch)


async def test_containers_are_forgotten_one_by_one(tmp_path: Path) -> None:
    async with records_in(tmp_path) as records:
        await records.admit(admitted("a"))
        await records.add_container("id", PodUid("a"), "c")
        await records.remove_container("id")
        await records.remove_container("id")
        assert records.containers() == ()


def sick(*ids: str) -> pb.UnhealthyDevices:
    return pb.UnhealthyDevices(devices=[pb.UnhealthyDevice(id=id_) for id_ in ids])


async def test_health_is_told_at_the_beginning_and_at_every_change(tmp_path: Path) -> None:
    async with records_in(tmp_path) as records:
        await records.admit(admitted("a"))
        records.note_health(sick("g0"))
        events = asyncio.ensure_future(seen(records, 0, 5))
        await asyncio.sleep(0)
        records.note_health(sick("g0"))
        records.note_health(sick())
        await asyncio.sleep(0)
        await records.admit(admitted("b"))
        assert await events == [
            "existing a@1",
            "unhealthy_devices g0@1",
            "synced @1",
            "unhealthy_devices @1",
            "changed b@2",
        ]


async def test_health_is_told_to_a_watch_that_goes_on(tmp_path: Path) -> None:
    async with records_in(tmp_path) as records:
        await records.admit(admitted("a"))
        await records.admit(admitted("b"))
        records.note_health(sick("g0"))
        assert await seen(records, 1, 2) == ["changed b@2", "unhealthy_devices g0@2"]
        assert await seen(records, 2, 1) == ["unhealthy_devices g0@2"]


async def test_changes_of_health_push_no_change_out_of_the_history(tmp_path: Path) -> None:
    async with records_in(tmp_path) as records:
        await records.admit(admitted("a"))
        await records.admit(admitted("b"))
        for number in range(10):
            records.note_health(sick(str(number)))
        assert records.revision == 2
        assert await seen(records, 1, 2) == ["changed b@2", "unhealthy_devices 9@2"]

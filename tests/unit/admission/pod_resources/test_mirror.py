"""The copy of the record: complete, never behind what was answered, and found again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.waiting import LONG, until

from numalign.admission.pod_resources import mirror as mirrors
from numalign.admission.pod_resources.mirror import AdmissionMirror
from numalign.errors import Unavailable
from numalign.model.revision import first_of_record
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import types_pb2 as pb

Event = ad.WatchAssignmentsResponse


class Record:
    """Plays the stub of the record: each watch gets the next events, then waits for `more`."""

    def __init__(self, *watches: list[Event]) -> None:
        self.watches = list(watches)
        self.more: asyncio.Queue[Event | None] = asyncio.Queue()

    def WatchAdmissions(self, request: tm.WatchAdmissionsRequest) -> Stream:  # noqa: N802 - the contract's
        assert request.from_revision == 0
        return Stream(self)


class Stream:
    def __init__(self, record: Record) -> None:
        self._record = record

    async def __aiter__(self) -> AsyncIterator[tm.WatchAdmissionsResponse]:
        for event in self._record.watches.pop(0):
            yield tm.WatchAdmissionsResponse(event=event)
        while (more := await self._record.more.get()) is not None:
            yield tm.WatchAdmissionsResponse(event=more)

    def cancel(self) -> None:
        """The stream ends with its task."""


@asynccontextmanager
async def following(record: Any) -> AsyncIterator[AdmissionMirror]:
    mirror = AdmissionMirror(record)
    mirror.start()
    try:
        yield mirror
    finally:
        await mirror.close()


def existing(uid: str, revision: int) -> Event:
    return Event(existing=pb.AdmissionRecord(pod_uid=uid), revision=revision)


def changed(uid: str, revision: int) -> Event:
    return Event(changed=pb.AdmissionRecord(pod_uid=uid), revision=revision)


def released(uid: str, revision: int) -> Event:
    return Event(released=ad.Released(pod_uid=uid), revision=revision)


def synced(revision: int) -> Event:
    return Event(synced=ad.Synced(), revision=revision)


@pytest.fixture(autouse=True)
def paced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirrors, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(mirrors, "READ_SECONDS", LONG)


async def test_pods_come_and_go() -> None:
    record = Record([existing("a", 5), existing("b", 5), synced(5)])
    async with following(record) as mirror:
        assert list(await mirror.pods()) == ["a", "b"]
        record.more.put_nowait(changed("c", 6))
        record.more.put_nowait(released("a", 7))
        mirror.answered(7)

        assert list(await mirror.pods()) == ["b", "c"]
        assert mirror.known("a") is None


async def test_a_reader_waits_for_what_was_answered() -> None:
    record = Record([synced(5)])
    async with following(record) as mirror:
        await mirror.pods()
        mirror.answered(6)
        reading = asyncio.ensure_future(mirror.pods())
        await asyncio.sleep(0.02)
        assert not reading.done()
        record.more.put_nowait(changed("a", 6))

        assert list(await reading) == ["a"]


async def test_half_a_picture_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirrors, "READ_SECONDS", 0.3)
    async with following(Record([existing("a", 5)])) as mirror:
        with pytest.raises(Unavailable, match="cannot be followed"):
            await mirror.pods()


async def test_an_interrupted_watch_begins_anew() -> None:
    record = Record([existing("a", 5), synced(5)], [existing("b", 9), synced(9)])
    async with following(record) as mirror:
        assert list(await mirror.pods()) == ["a"]
        mirror.answered(9)
        record.more.put_nowait(None)

        assert list(await mirror.pods()) == ["b"]


async def test_a_record_that_began_anew_is_believed() -> None:
    record = Record([existing("a", 500), synced(500)], [existing("b", 3), synced(3)])
    async with following(record) as mirror:
        await mirror.pods()
        mirror.answered(500)
        record.more.put_nowait(None)
        await until(lambda: mirror.known("b") is not None)

        assert list(await mirror.pods()) == ["b"]


@pytest.mark.parametrize(
    ("lost", "began"), [pytest.param(7, 8, id="higher"), pytest.param(8, 7, id="lower")]
)
async def test_a_record_that_began_anew_is_followed(lost: int, began: int) -> None:
    old, new = first_of_record(lost), first_of_record(began)
    record = Record(
        [existing("a", old + 5), synced(old + 5)], [existing("b", new + 1), synced(new + 1)]
    )
    async with following(record) as mirror:
        mirror.answered(old + 5)
        assert list(await mirror.pods()) == ["a"]
        record.more.put_nowait(None)
        mirror.answered(new + 1)

        assert list(await mirror.pods()) == ["b"]
        record.more.put_nowait(changed("c", new + 2))
        mirror.answered(new + 2)
        assert list(await mirror.pods()) == ["b", "c"]

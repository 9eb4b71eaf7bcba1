"""Prepare and settle of one provider's part."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.model.ids import AdmissionId, PodUid
from numalign.store.database import Database
from numalign.store.provider_store import PreparedAdmission, ProviderStore, StoredProvider

A, B = AdmissionId("a"), AdmissionId("b")
POD = PodUid("pod")


def prepared(admission_id: AdmissionId, before: bytes | None) -> PreparedAdmission:
    return PreparedAdmission(admission_id=admission_id, pod_uid=POD, before=before)


def stored(payload: bytes | None, revision: int, *open_: PreparedAdmission) -> StoredProvider:
    return StoredProvider(payload=payload, revision=revision, prepared=open_)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database.open(tmp_path, "node", report=print)
    yield database
    await database.close()


@pytest.fixture
def store(database: Database) -> ProviderStore:
    return ProviderStore(database, "cpu", durable=True)


async def test_nothing_is_stored_at_first(store: ProviderStore) -> None:
    assert await store.load() == stored(None, 0)


async def test_save_replaces_the_snapshot(store: ProviderStore) -> None:
    await store.save(b"1")
    await store.save(b"2", synced=True)
    assert await store.load() == stored(b"2", 2)


async def test_commit_keeps_what_was_prepared(store: ProviderStore) -> None:
    await store.save(b"1")
    await store.prepare(A, POD, b"1", b"2")
    assert await store.load() == stored(b"2", 2, prepared(A, b"1"))
    await store.settle(A, restore=False)
    assert await store.load() == stored(b"2", 2)


@pytest.mark.parametrize("before", [None, b"", b"1"], ids=["nothing", "empty", "some"])
async def test_abort_puts_back_what_was_there(store: ProviderStore, before: bytes | None) -> None:
    await store.prepare(A, POD, before, b"2")
    await store.settle(A, restore=True)
    assert await store.load() == stored(before, 2)


@pytest.mark.parametrize("restore", [False, True], ids=["commit", "abort"])
async def test_settling_again_changes_nothing(store: ProviderStore, restore: bool) -> None:
    await store.prepare(A, POD, b"1", b"2")
    await store.settle(A, restore=False)
    await store.settle(A, restore=restore)
    assert await store.load() == stored(b"2", 1)


async def test_preparing_again_keeps_the_first_way_back(store: ProviderStore) -> None:
    await store.prepare(A, POD, b"1", b"2")
    await store.prepare(A, POD, b"2", b"3")
    assert await store.load() == stored(b"3", 2, prepared(A, b"1"))


async def test_prepared_admissions_come_in_order(store: ProviderStore) -> None:
    await store.prepare(B, POD, b"1", b"2")
    await store.prepare(A, POD, b"2", b"3")
    assert await store.load() == stored(b"3", 2, prepared(B, b"1"), prepared(A, b"2"))


async def test_providers_that_share_a_file_do_not_see_each_other(database: Database) -> None:
    cpu = ProviderStore(database, "cpu", durable=False)
    memory = ProviderStore(database, "memory", durable=False)
    await cpu.prepare(A, POD, None, b"c")
    await memory.prepare(A, POD, None, b"m")
    await cpu.settle(A, restore=True)

    assert await cpu.load() == stored(None, 2)
    assert await memory.load() == stored(b"m", 1, prepared(A, None))


@settings(max_examples=25, deadline=None)
@given(outcomes=st.lists(st.booleans(), max_size=12))
async def test_snapshots_follow_the_outcomes(
    tmp_path_factory: pytest.TempPathFactory, outcomes: list[bool]
) -> None:
    database = Database.open(tmp_path_factory.mktemp("p"), "node", report=print)
    store = ProviderStore(database, "cpu", durable=False)
    current = b""
    await store.save(current)
    for number, committed in enumerate(outcomes):
        admission_id = AdmissionId(str(number))
        after = current + bytes([number])
        await store.prepare(admission_id, POD, current, after)
        await store.settle(admission_id, restore=not committed)
        current = after if committed else current
        found = await store.load()
        assert (found.payload, found.prepared) == (current, ())
    await database.close()

"""Prepare and settle of one provider's part."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.errors import StateError
from numalign.model.ids import AdmissionId, PodUid
from numalign.store.database import Database
from numalign.store.provider_store import PreparedAdmission, ProviderStore, StoredProvider

A, B = AdmissionId("a"), AdmissionId("b")
POD = PodUid("pod")


def prepared(admission_id: AdmissionId, before: bytes | None) -> PreparedAdmission:
    return PreparedAdmission(admission_id=admission_id, pod_uid=POD, before=before)


def stored(payload: bytes | None, *open_: PreparedAdmission) -> StoredProvider:
    return StoredProvider(payload=payload, prepared=open_)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database.open(tmp_path, "node", report=print)
    yield database
    await database.close()


@pytest.fixture
def store(database: Database) -> ProviderStore:
    return ProviderStore(database, "cpu", durable=True)


async def test_nothing_is_stored_at_first(store: ProviderStore) -> None:
    assert await store.load() == stored(None)


async def test_save_replaces_the_snapshot(store: ProviderStore) -> None:
    await store.save(b"1")
    await store.save(b"2", synced=True)
    assert await store.load() == stored(b"2")


async def test_commit_keeps_what_was_prepared(store: ProviderStore) -> None:
    await store.save(b"1")
    await store.prepare(A, POD, b"1", b"2")
    assert await store.load() == stored(b"2", prepared(A, b"1"))
    await store.settle(A, restore=False)
    assert await store.load() == stored(b"2")


@pytest.mark.parametrize("before", [None, b"", b"1"], ids=["nothing", "empty", "some"])
async def test_abort_puts_back_what_was_there(store: ProviderStore, before: bytes | None) -> None:
    await store.prepare(A, POD, before, b"2")
    await store.settle(A, restore=True)
    assert await store.load() == stored(before)


@pytest.mark.parametrize("restore", [False, True], ids=["commit", "abort"])
async def test_settling_again_changes_nothing(store: ProviderStore, restore: bool) -> None:
    await store.prepare(A, POD, b"1", b"2")
    await store.settle(A, restore=False)
    await store.settle(A, restore=restore)
    assert await store.load() == stored(b"2")


async def test_preparing_again_keeps_the_first_way_back(store: ProviderStore) -> None:
    await store.prepare(A, POD, b"1", b"2")
    await store.prepare(A, POD, b"2", b"3")
    assert await store.load() == stored(b"3", prepared(A, b"1"))


async def test_prepared_admissions_come_in_order(store: ProviderStore) -> None:
    await store.prepare(B, POD, b"1", b"2")
    await store.prepare(A, POD, b"2", b"3")
    assert await store.load() == stored(b"3", prepared(B, b"1"), prepared(A, b"2"))


async def test_providers_that_share_a_file_do_not_see_each_other(database: Database) -> None:
    cpu = ProviderStore(database, "cpu", durable=False)
    memory = ProviderStore(database, "memory", durable=False)
    await cpu.prepare(A, POD, None, b"c")
    await memory.prepare(A, POD, None, b"m")
    await cpu.settle(A, restore=True)

    assert await cpu.load() == stored(None)
    assert await memory.load() == stored(b"m", prepared(A, None))


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


class Model:
    """What a store must find: the payload, and what each open admission leads back to."""

    def __init__(self) -> None:
        self.payload: bytes | None = None
        self.open: dict[AdmissionId, bytes | None] = {}

    def found(self) -> StoredProvider:
        return stored(self.payload, *(prepared(a, before) for a, before in self.open.items()))


LARGE = b"entries" * 2000
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("save", "prepare", "commit", "abort", "fail", "load", "restart")),
        st.binary(max_size=3),
    ),
    max_size=25,
)


@settings(max_examples=30, deadline=None)
@given(steps=STEPS, durable=st.booleans(), fold=st.sampled_from((1, 3, 64)))
async def test_whatever_was_written_and_failed_what_is_read_is_what_was_kept_last(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, bytes]],
    durable: bool,
    fold: int,
) -> None:
    directory = tmp_path_factory.mktemp("p")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("numalign.store.provider_store._FOLD_AFTER", fold)
        database = Database.open(directory, "node", report=print)
        store, model = ProviderStore(database, "cpu", durable=durable), Model()
        other = ProviderStore(database, "memory", durable=durable)
        for number, (step, salt) in enumerate(steps):
            payload = salt + LARGE + str(number).encode()
            await other.save(payload)
            if step == "save" and not model.open:
                await store.save(payload)
                model.payload = payload
            elif step == "prepare":
                admission_id = next(iter(model.open), AdmissionId(str(number)))
                model.open.setdefault(admission_id, model.payload)
                await store.prepare(admission_id, POD, model.payload, payload)
                model.payload = payload
            elif step in {"commit", "abort"} and model.open:
                admission_id, before = model.open.popitem()
                await store.settle(admission_id, restore=step == "abort")
                model.payload = model.payload if step == "commit" else before
            elif step == "fail" and durable and not model.open:
                await _failing(database, store, payload)
            elif step == "restart":
                await database.close()
                database = Database.open(directory, "node", report=print)
                store = ProviderStore(database, "cpu", durable=durable)
                other = ProviderStore(database, "memory", durable=durable)
            if step in {"load", "restart"}:
                assert await store.load() == model.found()
        assert await store.load() == model.found()
        await database.close()


async def _failing(database: Database, store: ProviderStore, payload: bytes) -> None:
    """A save whose transaction is rolled back, and which nobody waited for."""
    write = database.write

    async def fails(work: Callable[[sqlite3.Connection], object], *, synced: bool) -> object:
        def rolled_back(connection: sqlite3.Connection) -> None:
            work(connection)
            raise sqlite3.OperationalError("disk full")

        return await write(rolled_back, synced=synced)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "write", fails)
        with pytest.raises(StateError):
            await store.save(payload)


async def test_an_admission_writes_no_more_where_much_is_kept(
    tmp_path: Path, database: Database
) -> None:
    store = ProviderStore(database, "cpu", durable=True)
    large = b"x" * 1_000_000
    await store.save(large)
    log = tmp_path / "node.db-wal"
    await database.write(lambda c: c.execute("PRAGMA user_version"), synced=True)
    before = bytes(log.read_bytes())
    await store.prepare(A, POD, large, large + b"y")
    after = log.read_bytes()

    changed = sum(a != b for a, b in zip(before, after, strict=True))
    assert changed < 100_000

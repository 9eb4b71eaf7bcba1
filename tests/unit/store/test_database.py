"""Transactions, threads, locking and damage of one state file."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.waiting import until

from numalign.errors import StateError, StateNotWritten
from numalign.store import database as database_module
from numalign.store.database import Database
from numalign.store.schema import APPLICATION_ID, SCHEMA_VERSION


def unexpected(line: str) -> None:
    raise AssertionError(line)


def open_database(directory: Path, name: str = "cpu") -> Database:
    return Database.open(directory, name, report=unexpected)


def put(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO counters(name, value) VALUES ('a', 1)")


def counters(connection: sqlite3.Connection) -> list[tuple[str, int]]:
    return list(connection.execute("SELECT name, value FROM counters"))


async def test_a_new_file_is_ours_and_private(tmp_path: Path) -> None:
    database = open_database(tmp_path / "state")
    await database.close()

    path = tmp_path / "state" / "cpu.db"
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


async def test_what_is_written_is_found_after_reopening(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    await database.write(put, synced=False)
    await database.close()
    database = open_database(tmp_path)
    assert await database.read(counters) == [("a", 1)]
    await database.close()


async def test_an_exception_rolls_back_and_comes_out(tmp_path: Path) -> None:
    database = open_database(tmp_path)

    def work(connection: sqlite3.Connection) -> None:
        put(connection)
        raise KeyError("no")

    with pytest.raises(KeyError):
        await database.write(work, synced=True)

    assert await database.read(counters) == []
    await database.write(put, synced=True)
    with pytest.raises(StateError, match=r"cpu\.db: UNIQUE constraint failed"):
        await database.write(put, synced=False)
    with pytest.raises(StateError, match=r"cpu\.db: no such table: nowhere"):
        await database.read(lambda c: c.execute("SELECT * FROM nowhere"))
    await database.close()


async def test_a_full_disk_may_pass_and_the_rest_goes_on(tmp_path: Path) -> None:
    database = open_database(tmp_path)

    def big(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA max_page_count=20")
        connection.execute(
            "INSERT INTO snapshot(provider, payload, revision) VALUES ('x', zeroblob(1000000), 1)"
        )

    with pytest.raises(StateNotWritten, match="database or disk is full") as refused:
        await database.write(big, synced=True)
    assert refused.value.path == str(database.path)
    await database.write(put, synced=True)
    assert await database.read(counters) == [("a", 1)]
    await database.close()


async def test_a_cancelled_wait_does_not_stop_the_transaction(tmp_path: Path) -> None:
    database = open_database(tmp_path)

    go_on = threading.Event()

    def slow(connection: sqlite3.Connection) -> None:
        go_on.wait(60)
        put(connection)

    blocker = asyncio.create_task(database.write(slow, synced=True))
    waiting = asyncio.create_task(
        database.write(lambda c: c.execute("UPDATE counters SET value = 7"), synced=True)
    )
    await asyncio.sleep(0.01)
    blocker.cancel()
    waiting.cancel()
    results = await asyncio.gather(blocker, waiting, return_exceptions=True)
    go_on.set()

    assert [type(r) for r in results] == [asyncio.CancelledError] * 2
    assert await database.read(counters) == [("a", 7)]
    await database.close()


async def test_the_loop_answers_while_a_transaction_is_slow(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    go_on = threading.Event()
    job = asyncio.create_task(database.write(lambda _: go_on.wait(60), synced=True))
    for _ in range(5):
        await asyncio.sleep(0.01)
    assert not job.done()
    go_on.set()
    await job
    await database.close()


async def test_synced_transactions_are_timed(tmp_path: Path) -> None:
    seen: list[float] = []
    database = Database.open(tmp_path, "cpu", report=unexpected, observe_commit=seen.append)
    await database.write(put, synced=False)
    assert seen == []
    await database.write(lambda c: c.execute("DELETE FROM counters"), synced=True)
    assert len(seen) == 1
    assert 0 < seen[0] < 60
    await database.close()


async def test_the_log_is_folded_in_between_transactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "_CHECKPOINT_AFTER_WRITES", 5)
    monkeypatch.setattr("numalign.store.state_file._LOG_BYTES", 0)
    database = open_database(tmp_path)
    size = 0
    for number in range(100):

        def insert(connection: sqlite3.Connection, key: str = str(number)) -> None:
            connection.execute("INSERT INTO snapshot VALUES (?, zeroblob(10000), 1)", (key,))

        await database.write(insert, synced=False)
        size = (tmp_path / "cpu.db-wal").stat().st_size

    assert size < 400_000
    rows = await database.read(lambda c: c.execute("SELECT count(*) FROM snapshot").fetchone())
    assert rows == (100,)
    await database.close()


async def test_a_process_that_ends_without_closing_loses_nothing(tmp_path: Path) -> None:
    script = (
        "import asyncio, os, pathlib, sys\n"
        "from numalign.store.database import Database\n"
        "async def main():\n"
        "    database = Database.open(pathlib.Path(sys.argv[1]), 'cpu', report=print)\n"
        "    for n in range(int(sys.argv[2])):\n"
        "        sql = 'INSERT INTO snapshot VALUES (?, zeroblob(9000), 1)'\n"
        "        await database.write(lambda c: c.execute(sql, (str(n),)), synced=False)\n"
        "    os._exit(0)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(tmp_path), "300"
    )
    assert await process.wait() == 0
    database = open_database(tmp_path)
    rows = await database.read(lambda c: c.execute("SELECT count(*) FROM snapshot").fetchone())
    assert rows == (300,)
    await database.close()


async def test_an_outside_reader_does_not_stop_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "_CHECKPOINT_AFTER_WRITES", 1)
    database = open_database(tmp_path)
    await database.write(put, synced=True)
    reader = sqlite3.connect(f"file:{tmp_path / 'cpu.db'}?mode=ro", uri=True, isolation_level=None)
    reader.execute("BEGIN")
    assert counters(reader) == [("a", 1)]
    await database.write(lambda c: c.execute("UPDATE counters SET value = 2"), synced=True)
    assert counters(reader) == [("a", 1)]
    reader.close()
    assert await database.read(counters) == [("a", 2)]
    await database.close()


async def test_what_is_deferred_rides_in_the_next_transaction(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    database.defer(put)
    database.defer(lambda c: c.execute("UPDATE counters SET value = value + 1"))
    seen = await database.write(counters, synced=True)

    assert seen == [("a", 2)]
    database.defer(lambda c: c.execute("UPDATE counters SET value = value * 10"))
    assert await database.read(counters) == [("a", 20)]
    database.defer(lambda c: c.execute("UPDATE counters SET value = 5"))
    await database.close()
    database = open_database(tmp_path)
    assert await database.read(counters) == [("a", 5)]
    await database.close()


async def test_what_is_deferred_is_written_soon_by_itself(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    reader = sqlite3.connect(f"file:{tmp_path / 'cpu.db'}?mode=ro", uri=True, isolation_level=None)
    database.defer(put)
    assert counters(reader) == []
    await until(lambda: counters(reader))

    assert counters(reader) == [("a", 1)]
    reader.close()
    await database.close()


async def test_what_is_deferred_outlives_a_failed_transaction(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    database.defer(put)

    def fail(connection: sqlite3.Connection) -> None:
        assert counters(connection) == [("a", 1)]
        raise KeyError("no")

    with pytest.raises(KeyError):
        await database.write(fail, synced=False)

    assert await database.read(counters) == [("a", 1)]
    await database.close()


async def test_deferred_changes_that_fail_are_reported_and_kept(tmp_path: Path) -> None:
    reports: list[str] = []
    database = Database.open(tmp_path, "cpu", report=reports.append)
    works = False

    def sometimes(connection: sqlite3.Connection) -> None:
        if not works:
            raise sqlite3.OperationalError("database or disk is full")
        put(connection)

    database.defer(sometimes)
    await until(lambda: reports)
    works = True

    assert await database.read(counters) == [("a", 1)]
    expected = f"state file {tmp_path}/cpu.db: database or disk is full"
    assert reports == [f"deferred changes have to wait: {expected}"]
    await database.close()


async def test_a_closed_database_refuses(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    await database.close()
    await database.close()
    with pytest.raises(StateNotWritten, match="is closed"):
        await database.write(put, synced=True)
    with pytest.raises(StateError, match="is closed"):
        await database.read(counters)


async def test_a_second_process_is_refused_with_the_first_ones_pid(tmp_path: Path) -> None:
    database = open_database(tmp_path, "topology")
    script = (
        "import sys, pathlib\n"
        "from numalign.store.database import Database\n"
        "from numalign.errors import StateError\n"
        "try:\n"
        "    Database.open(pathlib.Path(sys.argv[1]), 'topology', report=print)\n"
        "except StateError as error:\n"
        "    print(error)\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()

    expected = f"{tmp_path}/topology.lock is held by another process (pid {os.getpid()})\n"
    assert output.decode() == expected
    await database.close()
    await open_database(tmp_path, "topology").close()


def test_a_refused_file_leaves_no_lock_behind(tmp_path: Path) -> None:
    (tmp_path / "cpu.db").write_bytes(b"")
    for _ in range(2):
        with pytest.raises(StateError, match="the file is empty"):
            open_database(tmp_path)


def test_a_state_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match=r"state directory .*/file/state: Not a directory"):
        open_database(tmp_path / "file" / "state")


async def test_what_is_deferred_stays_behind_what_was_handed_in_before(tmp_path: Path) -> None:
    database = Database.open(tmp_path, "order", report=print)
    order: list[str] = []
    held = threading.Event()

    def hold(_: sqlite3.Connection) -> None:
        held.wait(60)

    def note(what: str) -> Callable[[sqlite3.Connection], None]:
        return lambda _: order.append(what)

    blocking = asyncio.ensure_future(database.write(hold, synced=False))
    await asyncio.sleep(0)
    database.defer(note("deferred first"))
    handed_in = asyncio.ensure_future(database.write(note("handed in"), synced=False))
    await asyncio.sleep(0)
    database.defer(note("deferred behind it"))
    last = asyncio.ensure_future(database.write(note("last"), synced=False))
    await asyncio.sleep(0)
    held.set()
    await asyncio.gather(blocking, handed_in, last)
    await database.close()
    assert order == ["deferred first", "handed in", "deferred behind it", "last"]

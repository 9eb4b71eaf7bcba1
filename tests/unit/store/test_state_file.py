"""State files that are damaged, from another version, or half made."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from numalign.errors import StateError
from numalign.store.schema import MIGRATIONS, SCHEMA_VERSION
from numalign.store.state_file import open_state_file, set_aside


@pytest.fixture
def sound_file(tmp_path: Path) -> Path:
    path = tmp_path / "cpu.db"
    connection = open_state_file(path)
    connection.execute("INSERT INTO snapshot VALUES ('cpu', zeroblob(200000), 1)")
    connection.close()
    return path


def rewrite(path: Path, change: Callable[[bytearray], bytes | bytearray]) -> None:
    path.write_bytes(change(bytearray(path.read_bytes())))


def _foreign(data: bytearray) -> bytearray:
    data[68:72] = b"\0\0\0\x07"
    return data


def _scrambled(data: bytearray) -> bytearray:
    data[4096 : 3 * 4096] = b"\xff" * 2 * 4096
    return data


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        pytest.param(lambda _: b"", "the file is empty", id="empty"),
        pytest.param(lambda d: d[:50], r"the file is truncated \(50 bytes\)", id="no-header"),
        pytest.param(lambda d: d[: len(d) // 2], "malformed", id="half"),
        pytest.param(lambda _: b"{}" * 100, "not a SQLite database", id="text"),
        pytest.param(_foreign, r"another program \(application id 0x7\)", id="foreign"),
        pytest.param(_scrambled, "damaged|malformed", id="scrambled"),
    ],
)
def test_damage_is_named_and_can_be_set_aside(
    sound_file: Path, change: Callable[[bytearray], bytes | bytearray], cause: str
) -> None:
    rewrite(sound_file, change)
    damaged = sound_file.read_bytes()

    with pytest.raises(StateError, match=f"{sound_file}.*({cause})"):
        open_state_file(sound_file)

    first = set_aside(sound_file)
    assert first.read_bytes() == damaged
    open_state_file(sound_file).close()
    assert set_aside(sound_file).name == "cpu.db.damaged-2"


def test_a_log_without_its_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cpu.db"
    log = tmp_path / "cpu.db-wal"
    log.write_bytes(b"x")
    with pytest.raises(StateError, match=f"{path} is missing, but {log} is there"):
        open_state_file(path)
    set_aside(path)
    open_state_file(path).close()


def test_a_newer_schema_is_refused(sound_file: Path) -> None:
    connection = sqlite3.connect(sound_file)
    connection.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    connection.close()
    with pytest.raises(StateError, match=f"schema {SCHEMA_VERSION + 1} is newer"):
        open_state_file(sound_file)


def test_an_older_schema_is_migrated_in_order(
    sound_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = (("CREATE TABLE later(a)",), ("INSERT INTO later VALUES (5)",))
    monkeypatch.setattr("numalign.store.state_file.MIGRATIONS", MIGRATIONS + more)
    monkeypatch.setattr("numalign.store.state_file.SCHEMA_VERSION", SCHEMA_VERSION + 2)
    connection = open_state_file(sound_file)

    assert connection.execute("SELECT a FROM later").fetchall() == [(5,)]
    assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION + 2,)
    connection.close()


def test_a_failed_migration_leaves_the_file_as_it_was(
    sound_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = (("CREATE TABLE later(a)", "NOT SQL"),)
    with monkeypatch.context() as patch:
        patch.setattr("numalign.store.state_file.MIGRATIONS", MIGRATIONS + broken)
        patch.setattr("numalign.store.state_file.SCHEMA_VERSION", SCHEMA_VERSION + 1)
        with pytest.raises(StateError, match="syntax error"):
            open_state_file(sound_file)

    connection = open_state_file(sound_file)
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    assert "later" not in tables
    connection.close()


def test_a_creation_that_was_interrupted_is_done_again(tmp_path: Path) -> None:
    (tmp_path / "cpu.db.new").write_bytes(b"half")
    connection = open_state_file(tmp_path / "cpu.db")
    assert connection.execute("SELECT name FROM counters").fetchall() == []
    connection.close()
    assert not (tmp_path / "cpu.db.new").exists()


def test_what_was_prepared_before_changes_were_kept_still_leads_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "node.db"
    with monkeypatch.context() as older:
        older.setattr("numalign.store.state_file.MIGRATIONS", MIGRATIONS[:1])
        older.setattr("numalign.store.state_file.SCHEMA_VERSION", 1)
        connection = open_state_file(path)
        connection.execute("INSERT INTO snapshot VALUES ('cpu', ?, 1)", (b"after",))
        connection.execute(
            "INSERT INTO prepared(provider, admission_id, pod_uid, before)"
            " VALUES ('cpu', 'a', 'pod', ?)",
            (b"before",),
        )
        connection.close()

    connection = open_state_file(path)

    rows = connection.execute(
        "SELECT provider, admission_id, pod_uid, before, change FROM prepared"
    )
    assert rows.fetchall() == [("cpu", "a", "pod", b"before", None)]
    connection.close()

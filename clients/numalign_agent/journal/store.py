"""The journal's file: SQLite, written by one process and read by any. Blocking.

A pod has one row, written over as things change; what happened is appended, and the oldest
entries go when there are too many.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from numalign.errors import StateError
from numalign_agent.journal.rows import Entry, PodRow, Problem

_VERSION = 1
_BUSY_SECONDS = 5.0
_PODS = """
CREATE TABLE pods(
    uid TEXT NOT NULL PRIMARY KEY, namespace TEXT NOT NULL, name TEXT NOT NULL,
    source TEXT NOT NULL, rank INTEGER, verdict TEXT NOT NULL, handler TEXT NOT NULL,
    reason TEXT NOT NULL, message TEXT NOT NULL, decided_at REAL NOT NULL,
    status TEXT NOT NULL) STRICT
"""
_ENTRIES = """
CREATE TABLE entries(
    number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, kind TEXT NOT NULL,
    uid TEXT NOT NULL, pod TEXT NOT NULL, type TEXT NOT NULL, reason TEXT NOT NULL,
    message TEXT NOT NULL) STRICT
"""
_PROBLEMS = """
CREATE TABLE problems(
    source TEXT NOT NULL, place TEXT NOT NULL, why TEXT NOT NULL,
    PRIMARY KEY (source, place)) STRICT
"""
_TABLES = (_PODS, _ENTRIES, _PROBLEMS, f"PRAGMA user_version={_VERSION}")
_ROW = "uid, namespace, name, source, rank, verdict, handler, reason, message, decided_at, status"
_ENTRY = "at, kind, uid, pod, type, reason, message"


class JournalStore:
    """One journal file. Every method may raise StateError naming it, a full disk included."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def open(cls, path: Path) -> JournalStore:
        """The journal at `path`, made if missing. A damaged one is set aside for a new one."""
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                return cls(path, _opened(path))
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise
                _set_aside(path)
                return cls(path, _opened(path))
        except OSError as error:
            raise StateError(f"journal {path}: {error.strerror}") from error
        except sqlite3.Error as error:
            raise StateError(f"journal {path}: {error}") from error

    @classmethod
    def open_to_read(cls, path: Path) -> JournalStore:
        """The journal of an agent that may be running."""
        if not path.is_file():
            raise StateError(f"journal {path}: there is none; no agent has run with this state")
        try:
            connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
            _check_version(connection)
        except sqlite3.Error as error:
            raise StateError(f"journal {path}: {error}") from error
        return cls(path, connection)

    def pods(self) -> list[PodRow]:
        """All pods, in the order of their first admission; those without one come last."""
        return [
            PodRow(
                uid=uid, namespace=namespace, name=name, source=source, rank=rank,
                verdict=verdict, handler=handler, reason=reason, message=message,
                decided_at=decided_at, status=json.loads(status),
            )
            for (
                uid, namespace, name, source, rank, verdict, handler, reason, message,
                decided_at, status,
            ) in self._query(f"SELECT {_ROW} FROM pods ORDER BY rank IS NULL, rank, uid")  # noqa: S608 - constants
        ]  # fmt: skip

    def entries(self, limit: int, pod: str = "") -> list[Entry]:
        """The last `limit` entries, oldest first; of one pod (`<namespace>/<name>`) or all."""
        where, values = ("WHERE pod = ?", [pod]) if pod else ("", [])
        rows = self._query(
            f"SELECT {_ENTRY} FROM entries {where} ORDER BY number DESC LIMIT ?",  # noqa: S608 - constants
            [*values, limit],
        )
        return [
            Entry(at=at, kind=kind, uid=uid, pod=name, type=type_, reason=reason, message=message)
            for at, kind, uid, name, type_, reason, message in reversed(rows)
        ]

    def problems(self) -> list[Problem]:
        """What sources cannot use, by source and place."""
        rows = self._query("SELECT source, place, why FROM problems ORDER BY source, place")
        return [Problem(*row) for row in rows]

    def write_problems(self, problems: Sequence[Problem]) -> None:
        """What sources cannot use now, all of it."""
        try:
            with self._connection as connection:
                connection.execute("DELETE FROM problems")
                connection.executemany(
                    "INSERT INTO problems VALUES (?,?,?)",
                    [(each.source, each.place, each.why) for each in problems],
                )
        except sqlite3.Error as error:
            raise StateError(f"journal {self.path}: {error}") from error

    def write(
        self, rows: Iterable[PodRow], gone: Iterable[str], entries: Sequence[Entry], keep: int
    ) -> None:
        """Write rows, drop those of pods that are gone, append entries: all or nothing.

        Of the entries the last `keep` stay.
        """
        try:
            with self._connection as connection:
                connection.executemany("DELETE FROM pods WHERE uid = ?", [(uid,) for uid in gone])
                connection.executemany(
                    f"INSERT OR REPLACE INTO pods({_ROW}) VALUES (?,?,?,?,?,?,?,?,?,?,?)",  # noqa: S608 - constants
                    [_values(row) for row in rows],
                )
                connection.executemany(
                    f"INSERT INTO entries({_ENTRY}) VALUES (?,?,?,?,?,?,?)",  # noqa: S608 - constants
                    [(e.at, e.kind, e.uid, e.pod, e.type, e.reason, e.message) for e in entries],
                )
                if entries:
                    connection.execute(
                        "DELETE FROM entries WHERE number <= (SELECT MAX(number) FROM entries) - ?",
                        (keep,),
                    )
        except sqlite3.Error as error:
            raise StateError(f"journal {self.path}: {error}") from error

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _query(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise StateError(f"journal {self.path}: {error}") from error


def _opened(path: Path) -> sqlite3.Connection:
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        # What is written survives the end of this process. Of a loss of power the last moments
        # may be missing; then pods are asked about again.
        connection.execute("PRAGMA synchronous=NORMAL")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            with connection:
                # All or nothing: else each statement about tables is a transaction of its own.
                connection.execute("BEGIN IMMEDIATE")
                for statement in _TABLES:
                    connection.execute(statement)
        _check_version(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_version(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != _VERSION:
        raise sqlite3.OperationalError(f"version {version} is not this program's {_VERSION}")


def _set_aside(path: Path) -> None:
    number = 1
    while (target := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    path.rename(target)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _values(row: PodRow) -> tuple[object, ...]:
    return (
        row.uid, row.namespace, row.name, row.source, row.rank, row.verdict, row.handler,
        row.reason, row.message, row.decided_at, json.dumps(row.status, sort_keys=True),
    )  # fmt: skip

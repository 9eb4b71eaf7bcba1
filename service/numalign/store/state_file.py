"""Creating, checking, opening and setting aside one SQLite file. Blocking; used at start.

Separate from `database`, which runs transactions on a file that this module found sound.
A file is made under another name and renamed, so an empty or half-made file under the real
name is never ours: it is damage, and the caller decides what to do about it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from numalign.errors import DamagedState, StateError
from numalign.store.schema import APPLICATION_ID, MIGRATIONS, SCHEMA_VERSION

_MAGIC = b"SQLite format 3\x00"
_COMPANIONS = ("-wal", "-shm", "-journal")
_CACHE_KIB = 512
_LOG_BYTES = 2 << 20
# Only a reader from outside (an inspection tool) can be in the way, and only of checkpoints.
_BUSY_SECONDS = 0.1


def open_state_file(path: Path) -> sqlite3.Connection:
    """A connection to the state file at `path`, made if there is none, at SCHEMA_VERSION.

    The connection may be used by one thread at a time, in autocommit mode, with commits
    that do not sync. Raises StateError naming the path and the cause for a file that is
    damaged or foreign (DamagedState), newer than this program, or not accessible.
    """
    try:
        if not path.exists():
            _create(path)
        _check_header(path)
        connection = sqlite3.connect(
            path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
    except OSError as error:
        raise StateError(f"state file {path}: {error.strerror}") from error
    except sqlite3.Error as error:
        raise _failure(path, error) from error
    try:
        _prepare(connection, path)
    except OSError as error:
        connection.close()
        raise StateError(f"state file {path}: {error.strerror}") from error
    except sqlite3.Error as error:
        connection.close()
        raise _failure(path, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def set_aside(path: Path, label: str = "damaged") -> Path:
    """Rename a state file and its companions; returns the new name of the main file.

    The first free of `<name>.<label>-1`, `-2`, ... is taken. The next open makes a new file.
    Raises StateError when it cannot be renamed.
    """
    number = 1
    while any(path.parent.glob(f"{path.name}.{label}-{number}*")):
        number += 1
    target = path.with_name(f"{path.name}.{label}-{number}")
    try:
        for suffix in ("", *_COMPANIONS):
            source = path.with_name(path.name + suffix)
            with contextlib.suppress(FileNotFoundError):
                source.rename(target.with_name(target.name + suffix))
        _sync_directory(path.parent)
    except OSError as error:
        raise StateError(f"cannot set aside {path}: {error.strerror}") from error
    return target


def _create(path: Path) -> None:
    for suffix in _COMPANIONS:
        companion = path.with_name(path.name + suffix)
        if companion.exists():
            # SQLite would replay the log of the lost file into the new one.
            raise _damaged(path, f"state file {path} is missing, but {companion} is there")
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.unlink(missing_ok=True)
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    connection = sqlite3.connect(unfinished, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        _migrate(connection, unfinished)
    finally:
        connection.close()
    unfinished.rename(path)
    _sync_directory(path.parent)


def _check_header(path: Path) -> None:
    with path.open("rb") as file:
        header = file.read(100)
    if not header:
        raise _damaged(path, f"state file {path}: the file is empty")
    if len(header) < 100:
        raise _damaged(path, f"state file {path}: the file is truncated ({len(header)} bytes)")
    if not header.startswith(_MAGIC):
        raise _damaged(path, f"state file {path}: not a SQLite database")
    application_id = int.from_bytes(header[68:72], "big")
    if application_id != APPLICATION_ID:
        raise _damaged(
            path,
            f"state file {path}: a database of another program "
            f"(application id {application_id:#x})",
        )


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
    (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
    if mode != "wal":
        raise StateError(f"state file {path}: write-ahead logging is not possible here ({mode})")
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise _damaged(path, f"state file {path}: damaged: {verdict}")
    connection.execute("PRAGMA synchronous=FULL")
    _migrate(connection, path)
    connection.execute("PRAGMA synchronous=NORMAL")
    _lengthen_log(path.with_name(f"{path.name}-wal"))
    # Checkpoints are run between transactions, so that no commit waits for one.
    connection.execute("PRAGMA wal_autocheckpoint=0")


def _lengthen_log(log: Path) -> None:
    # Commits then write over a log that has its length already, which syncs in about half
    # the time. SQLite reads a log up to the first frame that is not valid; zeros are none.
    with log.open("r+b") as file:
        missing = _LOG_BYTES - file.seek(0, os.SEEK_END)
        if missing > 0:
            file.write(bytes(missing))
            file.flush()
            os.fsync(file.fileno())


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise StateError(
            f"state file {path}: schema {version} is newer than this program's {SCHEMA_VERSION}"
        )
    for number in range(version, SCHEMA_VERSION):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in MIGRATIONS[number]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={number + 1}")
            connection.execute("COMMIT")
        except sqlite3.Error:
            connection.execute("ROLLBACK")
            raise


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _damaged(path: Path, message: str) -> DamagedState:
    return DamagedState(str(path), message)


def _failure(path: Path, error: sqlite3.Error) -> StateError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    message = f"state file {path}: {error}"
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return _damaged(path, message)
    return StateError(message)

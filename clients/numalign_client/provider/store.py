"""Where a provider's books outlive its process: a SQLite file, or nowhere."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb

_VERSION = 1


class StateFileError(Exception):
    """The state file cannot be used."""


@dataclass(frozen=True, slots=True)
class StoredPart:
    """What a pod was given: by a prepared admission, or (empty `admission_id`) for good."""

    pod_uid: str
    admission_id: str
    allocations: tuple[pb.ContainerAllocation, ...]


class PartStore(Protocol):
    """Keeps parts; every method is durable when it returns."""

    def load(self) -> tuple[StoredPart, ...]:
        """Everything that is kept."""

    def put(self, part: StoredPart) -> None:
        """Keep a part, in place of the one with the same ids."""

    def settle(
        self, pod_uid: str, admission_id: str, final: tuple[pb.ContainerAllocation, ...]
    ) -> None:
        """The prepared part is final: `final` is what the pod holds in all."""

    def drop(self, pod_uid: str, admission_id: str) -> None:
        """Forget a part."""

    def close(self) -> None:
        """Keep nothing more."""


class MemoryStore:
    """Keeps nothing: a provider whose pods hold nothing after a restart."""

    def load(self) -> tuple[StoredPart, ...]:
        """Nothing is kept."""
        return ()

    def put(self, part: StoredPart) -> None:
        """Nothing is kept."""

    def settle(
        self, pod_uid: str, admission_id: str, final: tuple[pb.ContainerAllocation, ...]
    ) -> None:
        """Nothing is kept."""

    def drop(self, pod_uid: str, admission_id: str) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is kept."""


class SqliteStore:
    """Keeps parts in a SQLite file, synced before a call returns.

    A server that stops does not wait for ever for the calls in hand, and a file that is closed
    under one would end the process. So it is closed between two uses; who comes later has an error.
    """

    def __init__(self, path: Path) -> None:
        """Open or create the file. Raises StateFileError if it is of another kind."""
        self._lock = threading.RLock()
        try:
            # Calls come from the threads of a server, one at a time.
            self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = FULL")
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
            if version not in (0, _VERSION):
                raise StateFileError(f"{path}: is of version {version}; this is {_VERSION}")
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS part (pod_uid TEXT, admission_id TEXT, "
                "allocations BLOB, PRIMARY KEY (pod_uid, admission_id))"
            )
            self._database.execute(f"PRAGMA user_version = {_VERSION}")
        except sqlite3.Error as error:
            raise StateFileError(f"{path}: {error}") from error

    def load(self) -> tuple[StoredPart, ...]:
        """Everything in the file, in the order in which it came."""
        with self._lock:
            rows = self._database.execute(
                "SELECT pod_uid, admission_id, allocations FROM part ORDER BY rowid"
            ).fetchall()
        return tuple(StoredPart(uid, admission, _decode(data)) for uid, admission, data in rows)

    def put(self, part: StoredPart) -> None:
        """Keep a part."""
        self._put(part)

    def settle(
        self, pod_uid: str, admission_id: str, final: tuple[pb.ContainerAllocation, ...]
    ) -> None:
        """Make a prepared part final, in one transaction."""
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                self.drop(pod_uid, admission_id)
                self._put(StoredPart(pod_uid, "", final))
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")

    def drop(self, pod_uid: str, admission_id: str) -> None:
        """Forget a part."""
        with self._lock:
            self._database.execute(
                "DELETE FROM part WHERE pod_uid = ? AND admission_id = ?", (pod_uid, admission_id)
            )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    def _put(self, part: StoredPart) -> None:
        with self._lock:
            self._database.execute(
                "INSERT OR REPLACE INTO part VALUES (?, ?, ?)",
                (part.pod_uid, part.admission_id, _encode(part.allocations)),
            )


def _encode(allocations: Iterable[pb.ContainerAllocation]) -> bytes:
    return hp.AllocateResponse(allocations=allocations).SerializeToString()


def _decode(data: bytes) -> tuple[pb.ContainerAllocation, ...]:
    return tuple(hp.AllocateResponse.FromString(data).allocations)

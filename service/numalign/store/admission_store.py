"""What the Topology Manager keeps: one row per admitted pod, which is the commit point.

Separate from `provider_store`: this row alone says whether an admission happened. The
record of what the pod got is an opaque JSON document here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from numalign.model.ids import AdmissionId, PodUid
from numalign.store.database import Database

_REVISION = "revision"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRow:
    """One admitted pod. `revision` is given by the store; what is passed in is ignored."""

    pod_uid: PodUid
    admission_id: AdmissionId
    owner: str
    pod: bytes
    record: bytes
    config_generation: int = 0
    revision: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRow:
    """A container id of the runtime and which container of which pod it is."""

    container_id: str
    pod_uid: PodUid
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAdmissions:
    """What a start finds; admissions in the order they were first made, containers by id."""

    admissions: tuple[AdmissionRow, ...]
    containers: tuple[ContainerRow, ...]
    revision: int


class AdmissionStore:
    """The Topology Manager's rows. Every change takes the next revision.

    Removals are not synced by default: the next commit syncs them too, and a removal that a
    loss of power takes back is asked for again by the agent's reconcile.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load_all(self) -> StoredAdmissions:
        """Every row, and the last revision given (0: none yet)."""
        return await self._database.read(_load_all)

    async def begin(self, revision: int) -> StoredAdmissions:
        """Everything; where no change was ever recorded, the record begins at `revision`."""

        def work(connection: sqlite3.Connection) -> StoredAdmissions:
            connection.execute(
                "INSERT INTO counters(name, value) VALUES (?, ?) ON CONFLICT DO NOTHING",
                (_REVISION, revision),
            )
            return _load_all(connection)

        found = await self.load_all()
        return found if found.revision else await self._database.write(work, synced=False)

    async def commit(self, row: AdmissionRow, *, synced: bool = True) -> int:
        """Record an admitted pod, or what it has now after a resize; returns the revision.

        With `synced` on disk when it returns, with everything written to this file before.
        A caller that may be cancelled must let this call end: the row may be there all the
        same.
        """
        (revision,) = await self.commit_all((row,), synced=synced)
        return revision

    async def commit_all(
        self, rows: Sequence[AdmissionRow], *, synced: bool = True
    ) -> tuple[int, ...]:
        """Record pods as `commit` does, all of them or none; the revision of each."""

        def work(connection: sqlite3.Connection) -> tuple[int, ...]:
            return tuple(_put(connection, row) for row in rows)

        return await self._database.write(work, synced=synced)

    async def delete(self, pod_uids: Iterable[PodUid], *, synced: bool = False) -> int:
        """Forget pods and their containers; unknown ones are ignored. Returns the revision."""
        keys = [(uid,) for uid in pod_uids]

        def work(connection: sqlite3.Connection) -> int:
            connection.executemany("DELETE FROM admissions WHERE pod_uid = ?", keys)
            connection.executemany("DELETE FROM containers WHERE pod_uid = ?", keys)
            return _next_revision(connection)

        return await self._database.write(work, synced=synced)

    async def add_container(self, row: ContainerRow) -> int:
        """Remember a container that is about to start; returns the revision. Not synced."""

        def work(connection: sqlite3.Connection) -> int:
            connection.execute(
                "INSERT INTO containers(container_id, pod_uid, name) VALUES (?, ?, ?)"
                " ON CONFLICT DO UPDATE SET pod_uid = excluded.pod_uid, name = excluded.name",
                (row.container_id, row.pod_uid, row.name),
            )
            return _next_revision(connection)

        return await self._database.write(work, synced=False)

    async def remove_container(self, container_id: str) -> bool:
        """Forget a container that is gone; returns whether it was known. Not synced."""

        def work(connection: sqlite3.Connection) -> bool:
            cursor = connection.execute(
                "DELETE FROM containers WHERE container_id = ?", (container_id,)
            )
            if cursor.rowcount == 0:
                return False
            _next_revision(connection)
            return True

        return await self._database.write(work, synced=False)

    async def advance(self) -> int:
        """Take a revision for a change that is kept elsewhere. Not synced."""
        return await self._database.write(_next_revision, synced=False)


def _put(connection: sqlite3.Connection, row: AdmissionRow) -> int:
    revision = _next_revision(connection)
    connection.execute(
        "INSERT INTO admissions(pod_uid, admission_id, owner, pod, record,"
        " config_generation, revision) VALUES (?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT(pod_uid) DO UPDATE SET admission_id = excluded.admission_id,"
        " owner = excluded.owner, pod = excluded.pod, record = excluded.record,"
        " config_generation = excluded.config_generation, revision = excluded.revision",
        (
            row.pod_uid,
            row.admission_id,
            row.owner,
            row.pod,
            row.record,
            row.config_generation,
            revision,
        ),
    )
    return revision


def _next_revision(connection: sqlite3.Connection) -> int:
    row = connection.execute(
        "INSERT INTO counters(name, value) VALUES (?, 1)"
        " ON CONFLICT DO UPDATE SET value = value + 1 RETURNING value",
        (_REVISION,),
    ).fetchone()
    return int(row[0])


def _load_all(connection: sqlite3.Connection) -> StoredAdmissions:
    admissions = connection.execute(
        "SELECT pod_uid, admission_id, owner, pod, record, config_generation, revision"
        " FROM admissions ORDER BY rowid"
    )
    containers = connection.execute(
        "SELECT container_id, pod_uid, name FROM containers ORDER BY container_id"
    )
    counter = connection.execute(
        "SELECT value FROM counters WHERE name = ?", (_REVISION,)
    ).fetchone()
    return StoredAdmissions(
        admissions=tuple(
            AdmissionRow(
                pod_uid=pod_uid,
                admission_id=admission_id,
                owner=owner,
                pod=pod,
                record=record,
                config_generation=generation,
                revision=revision,
            )
            for pod_uid, admission_id, owner, pod, record, generation, revision in admissions
        ),
        containers=tuple(ContainerRow(container_id=c, pod_uid=p, name=n) for c, p, n in containers),
        revision=int(counter[0]) if counter is not None else 0,
    )

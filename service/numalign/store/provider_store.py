"""What one provider keeps: its snapshot, and what it had before each unsettled admission.

Separate from `admission_store`, because each provider may live in a process and a file of
its own. Two phases with presumed abort: `prepare` makes an admission's part durable together
with the way back, `settle` forgets the way back (commit) or takes it (abort). The Topology
Manager's row decides which of the two a restart has to do.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from numalign.model.ids import AdmissionId, PodUid
from numalign.store.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedAdmission:
    """One admission that was prepared and not settled. `before`: None is nothing stored."""

    admission_id: AdmissionId
    pod_uid: PodUid
    before: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProvider:
    """What a start finds. `prepared` is in order of preparing; undo it from the end."""

    payload: bytes | None
    revision: int
    prepared: tuple[PreparedAdmission, ...]


class ProviderStore:
    """The rows of one provider in a database that others may share.

    `durable` says whether `prepare` syncs by itself. In a process of its own it must; where
    the Topology Manager's store shares the file, this part is written and synced with the
    commit there, so that an admission costs one hand-over to the writer thread and one sync.
    """

    def __init__(self, database: Database, provider: str, *, durable: bool) -> None:
        self._database = database
        self._provider = provider
        self.durable = durable

    async def load(self) -> StoredProvider:
        """Everything stored for this provider; revision 0 means nothing ever was."""
        return await self._database.read(self._load)

    async def prepare(
        self, admission_id: AdmissionId, pod_uid: PodUid, before: bytes | None, after: bytes
    ) -> None:
        """Make `after` the snapshot and keep `before` until `settle`.

        Preparing the same admission again moves the snapshot on and keeps the first
        `before`, which is where an abort must lead.
        """

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO prepared(provider, admission_id, pod_uid, before)"
                " VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (self._provider, admission_id, pod_uid, before),
            )
            self._put(connection, after)

        if self.durable:
            await self._database.write(work, synced=True)
        else:
            self._database.defer(work)

    async def settle(self, admission_id: AdmissionId, *, restore: bool) -> None:
        """End an admission: keep the snapshot, or (`restore`) put `before` back.

        Deferred, so perhaps lost at a crash: then the admission is found prepared again, and
        the Topology Manager's row says the same as now. An admission that is not prepared
        (any more) is left alone, so that settling twice is settling once.
        """

        def work(connection: sqlite3.Connection) -> None:
            row = connection.execute(
                "DELETE FROM prepared WHERE provider = ? AND admission_id = ? RETURNING before",
                (self._provider, admission_id),
            ).fetchone()
            if row is not None and restore:
                self._put(connection, row[0])

        self._database.defer(work)

    async def save(self, payload: bytes, *, synced: bool = False) -> None:
        """Make `payload` the snapshot outside of any admission.

        Where the file is shared and no sync is asked for, it is deferred to the Topology
        Manager's own next change. Not for use between `prepare` and an abort: the abort would
        take it back.
        """

        def work(connection: sqlite3.Connection) -> None:
            self._put(connection, payload)

        if synced or self.durable:
            await self._database.write(work, synced=synced)
        else:
            self._database.defer(work)

    def _put(self, connection: sqlite3.Connection, payload: bytes | None) -> None:
        connection.execute(
            "INSERT INTO snapshot(provider, payload, revision) VALUES (?, ?, 1)"
            " ON CONFLICT DO UPDATE SET payload = excluded.payload, revision = revision + 1",
            (self._provider, payload),
        )

    def _load(self, connection: sqlite3.Connection) -> StoredProvider:
        row = connection.execute(
            "SELECT payload, revision FROM snapshot WHERE provider = ?", (self._provider,)
        ).fetchone()
        payload, revision = row if row is not None else (None, 0)
        prepared = connection.execute(
            "SELECT admission_id, pod_uid, before FROM prepared WHERE provider = ?"
            " ORDER BY sequence",
            (self._provider,),
        )
        return StoredProvider(
            payload=payload,
            revision=revision,
            prepared=tuple(
                PreparedAdmission(admission_id=a, pod_uid=p, before=b) for a, p, b in prepared
            ),
        )

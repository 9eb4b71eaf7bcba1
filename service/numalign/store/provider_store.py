"""What one provider keeps: its payload, and what it had before each unsettled admission.

Separate from `admission_store`, because each provider may live in a process and a file of
its own. Two phases with presumed abort: `prepare` makes an admission's part durable together
with the way back, `settle` forgets the way back (commit) or takes it (abort). The Topology
Manager's row decides which of the two a restart has to do.

In the file a payload is a snapshot and the changes since, each of which is one run of bytes:
an admission changes what one pod holds, and writes that, however many pods there are. The way
back from a prepared part is to drop its change. Changes are folded into the snapshot when there
are many of them, behind an outcome, where nobody waits.

A change fits on one version only. Each has a token, and it is written only onto the token that
it was made for; where another one is there, because a write in between failed, the payload is
written as a whole. So nothing depends on what becomes of a write that nobody waited for.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from numalign.model.ids import AdmissionId, PodUid
from numalign.store.byte_change import ByteChange, change_between
from numalign.store.database import Database

_FOLD_AFTER = 64
"""How many changes there are at least when they are folded into the snapshot."""

_Put = Callable[[sqlite3.Connection], int | None]

_Changes = Mapping[int, ByteChange]
"""Changes by sequence, ascending."""


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
    prepared: tuple[PreparedAdmission, ...]


@dataclass(frozen=True, slots=True)
class _Version:
    """A payload as it was handed in, and the token of its last change."""

    payload: bytes
    token: int


class ProviderStore:
    """The rows of one provider in a database that others may share.

    `durable` says whether what is handed in is written by itself. In a process of its own it must
    be; where the Topology Manager's store shares the file, it is written and synced with the
    commit there, so that an admission costs one hand-over to the writer thread and one sync.
    """

    def __init__(self, database: Database, provider: str, *, durable: bool) -> None:
        self._database = database
        self._provider = provider
        self._next_token = secrets.randbits(48)
        self._changes = 0
        # What was handed in last; None: not known, so that the next payload is written whole.
        self._latest: _Version | None = None
        self._ways_back: dict[AdmissionId, _Version | None] = {}
        self.durable = durable

    async def load(self) -> StoredProvider:
        """Everything stored for this provider; no payload means nothing ever was."""
        return await self._database.read(self._load)

    async def prepare(
        self,
        admission_id: AdmissionId,
        pod_uid: PodUid,
        before: bytes | None,
        after: bytes,
        *,
        synced: bool = True,
    ) -> None:
        """Make `after` the payload and keep `before` until `settle`.

        It is in the file when this returns, and (`synced`) on disk.

        Preparing the same admission again moves the payload on and keeps the first
        `before`, which is where an abort must lead.
        """
        known = self._latest
        base = known if known is not None and known.payload == before else None
        self._ways_back.setdefault(admission_id, base)
        put = self._put(base, after)

        def work(connection: sqlite3.Connection) -> None:
            change = put(connection)
            whose = (self._provider, admission_id)
            connection.execute(
                "INSERT INTO prepared(provider, admission_id, pod_uid, before, change)"
                " SELECT ?, ?, ?, ?, ? WHERE NOT EXISTS"
                " (SELECT 1 FROM prepared WHERE provider = ? AND admission_id = ?)",
                (*whose, pod_uid, None if change else before, change, *whose),
            )

        if self.durable:
            await self._database.write(work, synced=synced)
        else:
            self._database.defer(work)

    async def settle(self, admission_id: AdmissionId, *, restore: bool) -> None:
        """End an admission: keep the payload, or (`restore`) put `before` back.

        Deferred, so perhaps lost at a crash: then the admission is found prepared again, and
        the Topology Manager's row says the same as now. An admission that is not prepared
        (any more) is left alone, so that settling twice is settling once.
        """
        way_back = self._ways_back.pop(admission_id, None)
        fold: _Put | None = None
        if restore:
            self._latest = way_back
        elif self._latest is not None and self._changes >= _FOLD_AFTER and not self._ways_back:
            fold = self._put(None, self._latest.payload)

        def work(connection: sqlite3.Connection) -> None:
            row = connection.execute(
                "DELETE FROM prepared WHERE provider = ? AND admission_id = ?"
                " RETURNING before, change",
                (self._provider, admission_id),
            ).fetchone()
            if row is None:
                return
            before, change = row
            if fold is not None:
                fold(connection)
            elif restore and change is None:
                self._put_whole(connection, before, None)
            elif restore:
                connection.execute(
                    "DELETE FROM changes WHERE provider = ? AND sequence >= ?",
                    (self._provider, change),
                )

        self._database.defer(work)

    async def save(self, payload: bytes, *, synced: bool = False) -> None:
        """Make `payload` what is kept, outside of any admission.

        Where the file is shared and no sync is asked for, it is deferred to the Topology
        Manager's own next change. Not for use between `prepare` and an abort: the abort would
        take it back.
        """
        put = self._put(None if self._changes >= _FOLD_AFTER else self._latest, payload)
        if synced or self.durable:
            await self._database.write(put, synced=synced)
        else:
            self._database.defer(put)

    def _put(self, base: _Version | None, payload: bytes) -> _Put:
        """How to write a payload: as a change of `base` if that is there, else as a whole.

        What it returns is the sequence of the change, None where it wrote the whole.
        """
        token = self._next_token
        self._next_token += 1
        self._latest = _Version(payload, token)
        change = None if base is None else change_between(base.payload, payload)
        self._changes = 0 if change is None else self._changes + 1

        def put(connection: sqlite3.Connection) -> int | None:
            if base is not None and change is not None:
                cursor = connection.execute(
                    "INSERT INTO changes(provider, token, front, back, middle)"
                    " SELECT ?, ?, ?, ?, ? WHERE ? = (SELECT token FROM changes"
                    " WHERE provider = ? ORDER BY sequence DESC LIMIT 1)",
                    (
                        self._provider,
                        token,
                        change.front,
                        change.back,
                        change.middle,
                        base.token,
                        self._provider,
                    ),
                )
                if cursor.rowcount:
                    return cursor.lastrowid
            self._put_whole(connection, payload, token)
            return None

        return put

    def _put_whole(
        self, connection: sqlite3.Connection, payload: bytes | None, token: int | None
    ) -> None:
        """Write the snapshot anew, with no changes but an empty one that has the token."""
        leading_back = connection.execute(
            "SELECT admission_id, change FROM prepared WHERE provider = ? AND change IS NOT NULL",
            (self._provider,),
        ).fetchall()
        if leading_back:
            # They cannot lead back by changes that are gone.
            snapshot, changes = self._read(connection)
            for admission_id, sequence in leading_back:
                connection.execute(
                    "UPDATE prepared SET before = ?, change = NULL"
                    " WHERE provider = ? AND admission_id = ?",
                    (_applied(snapshot, changes, sequence), self._provider, admission_id),
                )
        connection.execute(
            "INSERT INTO snapshot(provider, payload, revision) VALUES (?, ?, 1)"
            " ON CONFLICT DO UPDATE SET payload = excluded.payload, revision = revision + 1",
            (self._provider, payload),
        )
        connection.execute("DELETE FROM changes WHERE provider = ?", (self._provider,))
        if payload is not None and token is not None:
            connection.execute(
                "INSERT INTO changes(provider, token, front, back, middle) VALUES (?, ?, ?, 0, ?)",
                (self._provider, token, len(payload), b""),
            )

    def _read(self, connection: sqlite3.Connection) -> tuple[bytes | None, _Changes]:
        row = connection.execute(
            "SELECT payload FROM snapshot WHERE provider = ?", (self._provider,)
        ).fetchone()
        changes = connection.execute(
            "SELECT sequence, front, back, middle FROM changes WHERE provider = ?"
            " ORDER BY sequence",
            (self._provider,),
        )
        found = {sequence: ByteChange(*change) for sequence, *change in changes}
        return (None if row is None else row[0]), found

    def _load(self, connection: sqlite3.Connection) -> StoredProvider:
        snapshot, changes = self._read(connection)
        prepared = connection.execute(
            "SELECT admission_id, pod_uid, before, change FROM prepared WHERE provider = ?"
            " ORDER BY sequence",
            (self._provider,),
        )
        return StoredProvider(
            payload=_applied(snapshot, changes, None),
            prepared=tuple(
                PreparedAdmission(
                    admission_id=admission_id,
                    pod_uid=pod_uid,
                    before=before if change is None else _applied(snapshot, changes, change),
                )
                for admission_id, pod_uid, before, change in prepared
            ),
        )


def _applied(snapshot: bytes | None, changes: _Changes, before: int | None) -> bytes | None:
    """The payload as the changes lead to it, those from `before` on left out."""
    payload = snapshot
    for sequence, change in changes.items():
        if payload is None or (before is not None and sequence >= before):
            break
        payload = change.applied(payload)
    return payload

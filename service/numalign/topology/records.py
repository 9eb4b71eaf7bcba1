"""Who is admitted on this node: the record, its store, its revisions and those who watch.

The record is the commit point of an admission: a row is on disk before the answer leaves.
Separate from the manager because the manager decides when something is recorded, and this
file only how it is kept.

Invariants: every change has a revision of its own, revisions only grow, also over restarts;
`history` holds the changes after `oldest`, in order, without a gap.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Protocol

from numalign.errors import NotFound, RevisionTooOld
from numalign.model.ids import AdmissionId, PodUid
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRow:
    """One admitted pod as it is stored: `record` is a serialised AdmissionRecord."""

    pod_uid: PodUid
    admission_id: AdmissionId
    owner: str
    revision: int
    pod: bytes
    record: bytes


class AdmissionStore(Protocol):
    """Where the record is kept; see `numalign.store.admission_store`."""

    async def commit(self, row: AdmissionRow) -> None:
        """Write one row, synced: when this returns the pod is admitted for good."""

    async def update(self, row: AdmissionRow) -> None:
        """Write a row that follows from what others keep; need not be synced."""

    async def delete(self, pod_uids: tuple[PodUid, ...], revision: int) -> None:
        """Remove rows, and remember the revision, synced."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """One admitted pod. `message` is what is listed; it is replaced, never changed."""

    admission_id: AdmissionId
    pod: bytes
    message: pb.AdmissionRecord

    @property
    def pod_uid(self) -> PodUid:
        """UID of the pod."""
        return PodUid(self.message.pod_uid)

    def row(self) -> AdmissionRow:
        """The row to store."""
        return AdmissionRow(
            pod_uid=self.pod_uid,
            admission_id=self.admission_id,
            owner=self.message.owner,
            revision=self.message.revision,
            pod=self.pod,
            record=self.message.SerializeToString(),
        )


class Records:
    """The record of admitted pods. Changes come from whoever holds the node's turn."""

    def __init__(
        self,
        store: AdmissionStore,
        rows: Iterable[AdmissionRow],
        revision: int,
        history_length: int,
    ) -> None:
        self._store = store
        self._revision = revision
        self._oldest = revision
        self._history: deque[ad.WatchAssignmentsResponse] = deque(maxlen=history_length)
        self._changed = asyncio.Event()
        self._shared_cpus = ""
        self._pods: dict[PodUid, Admitted] = {}
        for row in sorted(rows, key=lambda row: row.revision):
            self._pods[row.pod_uid] = Admitted(
                row.admission_id, row.pod, pb.AdmissionRecord.FromString(row.record)
            )

    @property
    def revision(self) -> int:
        """The revision of the last change."""
        return self._revision

    @property
    def shared_cpus(self) -> str:
        """CPUs of containers without exclusive CPUs, as last reported."""
        return self._shared_cpus

    def get(self, pod_uid: PodUid) -> Admitted | None:
        """The pod, or None if it is not admitted."""
        return self._pods.get(pod_uid)

    def require(self, pod_uid: PodUid) -> Admitted:
        """The pod. Raises NotFound if it is not admitted."""
        admitted = self._pods.get(pod_uid)
        if admitted is None:
            raise NotFound(f'pod_uid: pod "{pod_uid}" is not admitted')
        return admitted

    def all(self) -> tuple[Admitted, ...]:
        """Every admitted pod, in order of admission."""
        return tuple(self._pods.values())

    async def admit(self, admitted: Admitted) -> Admitted:
        """Record a pod: when this returns it is admitted for good. The record as numbered."""
        numbered = self._numbered(admitted)
        await self._store.commit(numbered.row())
        self._note_changed(numbered)
        return numbered

    async def change(self, admitted: Admitted) -> Admitted:
        """Record what an admitted pod holds now."""
        numbered = self._numbered(admitted)
        await self._store.update(numbered.row())
        self._note_changed(numbered)
        return numbered

    async def release(self, pod_uids: Iterable[PodUid]) -> None:
        """Take pods out of the record."""
        gone = tuple(uid for uid in pod_uids if uid in self._pods)
        if not gone:
            return
        await self._store.delete(gone, self._revision + len(gone))
        for pod_uid in gone:
            del self._pods[pod_uid]
            self._note(ad.WatchAssignmentsResponse(released=ad.Released(pod_uid=pod_uid)))

    def share(self, cpus: str) -> None:
        """The CPUs of containers without exclusive CPUs are these now."""
        if cpus != self._shared_cpus:
            self._shared_cpus = cpus
            self._note(ad.WatchAssignmentsResponse(shared_cpus=ad.SharedCpus(cpus=cpus)))

    async def watch(self, from_revision: int) -> AsyncIterator[ad.WatchAssignmentsResponse]:
        """What is there, a marker, then every change; or every change after a revision.

        Raises RevisionTooOld when the history does not go back that far, or the watcher is
        so slow that it has been overtaken.
        """
        seen = self._revision
        if from_revision == 0:
            for event in self._picture():
                yield event
        else:
            seen = from_revision
        while True:
            changed = self._changed
            for event in self._after(seen):
                seen = event.revision
                yield event
            if seen >= self._revision:
                await changed.wait()

    def _picture(self) -> list[ad.WatchAssignmentsResponse]:
        revision = self._revision
        events = [
            ad.WatchAssignmentsResponse(existing=a.message, revision=revision)
            for a in self._pods.values()
        ]
        if self._shared_cpus:
            shared = ad.SharedCpus(cpus=self._shared_cpus)
            events.append(ad.WatchAssignmentsResponse(shared_cpus=shared, revision=revision))
        events.append(ad.WatchAssignmentsResponse(synced=ad.Synced(), revision=revision))
        return events

    def _after(self, revision: int) -> list[ad.WatchAssignmentsResponse]:
        if revision > self._revision:
            raise RevisionTooOld(
                f"from_revision: {revision} is in the future; the node is at {self._revision}"
            )
        oldest = self._history[0].revision - 1 if self._history else self._oldest
        if revision < max(oldest, self._oldest):
            raise RevisionTooOld(
                f"from_revision: changes after {revision} are no longer kept (oldest: {oldest}); "
                "start again from 0"
            )
        return [event for event in self._history if event.revision > revision]

    def _numbered(self, admitted: Admitted) -> Admitted:
        message = pb.AdmissionRecord()
        message.CopyFrom(admitted.message)
        message.revision = self._revision + 1
        return Admitted(admitted.admission_id, admitted.pod, message)

    def _note_changed(self, admitted: Admitted) -> None:
        self._pods[admitted.pod_uid] = admitted
        self._note(ad.WatchAssignmentsResponse(changed=admitted.message))

    def _note(self, event: ad.WatchAssignmentsResponse) -> None:
        self._revision += 1
        event.revision = self._revision
        self._history.append(event)
        self._changed.set()
        self._changed = asyncio.Event()

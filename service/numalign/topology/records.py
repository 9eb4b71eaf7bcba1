"""Who is admitted on this node: the record, its store, its revisions and those who watch.

The record is the commit point of an admission: a row is on disk before the answer leaves.
Separate from the manager because the manager decides when something is recorded, and this
file only how it is kept.

Invariants: every change has a revision of its own, which the store gives, and revisions only
grow, also over restarts; the history holds the changes since the oldest it has, in order,
without a gap.

The health of held devices is told along with the changes and is none of them: it is not kept,
has no revision, and whoever watches is told how it stands, not how it came to that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from numalign.errors import FieldViolation, InvalidInput, NotFound, RevisionTooOld
from numalign.model.ids import AdmissionId, PodUid
from numalign.model.revision import same_record
from numalign.store.admission_store import (
    AdmissionRow,
    AdmissionStore,
    ContainerRow,
    StoredAdmissions,
)
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import types_pb2 as pb


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
        """The row to store; its revision is the store's to give."""
        return AdmissionRow(
            pod_uid=self.pod_uid,
            admission_id=self.admission_id,
            owner=self.message.owner,
            pod=self.pod,
            record=self.message.SerializeToString(),
            config_generation=self.message.config_generation,
        )

    def at(self, revision: int) -> Admitted:
        """The same pod as of another revision."""
        message = pb.AdmissionRecord()
        message.CopyFrom(self.message)
        message.revision = revision
        return Admitted(self.admission_id, self.pod, message)


@dataclass(frozen=True, slots=True)
class Change:
    """One change as it is kept for those who watch.

    `event` is a WatchAssignmentsResponse in bytes: thousands are kept, few are ever asked for,
    and as messages they would take ten times the memory.
    """

    revision: int
    event: bytes


class Records:
    """The record of admitted pods. Changes come from whoever holds the node's turn."""

    def __init__(
        self,
        store: AdmissionStore,
        stored: StoredAdmissions,
        history_length: int,
    ) -> None:
        self._store = store
        self._revision = stored.revision
        self._oldest = stored.revision
        self._history: deque[Change] = deque(maxlen=history_length)
        self._changed = asyncio.Event()
        self._changing = asyncio.Lock()
        self._shared_cpus = ""
        self._unhealthy: pb.UnhealthyDevices | None = None
        self._unhealthy_by_teller: dict[str, pb.UnhealthyDevices] = {}
        self._pods: dict[PodUid, Admitted] = {}
        for row in stored.admissions:
            message = pb.AdmissionRecord.FromString(row.record)
            self._pods[row.pod_uid] = Admitted(row.admission_id, row.pod, message).at(row.revision)
        self._containers = {row.container_id: row for row in stored.containers}

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

    def require_past(self, field: str, revision: int) -> None:
        """Raise InvalidInput, naming the field, where nobody can have seen `revision` here.

        0, which is before everything, can always be.
        """
        if revision and not same_record(revision, self._revision):
            raise InvalidInput(
                FieldViolation(
                    field,
                    f"{revision} is of another record of admitted pods, which was lost; the node "
                    f"is at {self._revision}: take the revision of ListAdmissions",
                )
            )
        if revision > self._revision:
            raise InvalidInput(
                FieldViolation(
                    field, f"{revision} is in the future; the node is at {self._revision}"
                )
            )

    def all(self) -> tuple[Admitted, ...]:
        """Every admitted pod, in order of admission."""
        return tuple(self._pods.values())

    async def admit(self, admitted: Admitted) -> Admitted:
        """Record a pod: when this returns it is admitted for good. The record as numbered."""
        return await self._put(admitted, synced=True)

    async def admit_all(self, admitted: Sequence[Admitted]) -> tuple[Admitted, ...]:
        """Record pods as `admit` does, all of them or none."""
        async with self._changing:
            revisions = await self._store.commit_all([each.row() for each in admitted])
            numbered = tuple(map(Admitted.at, admitted, revisions))
            for each in numbered:
                self._take(each)
            return numbered

    async def change(self, admitted: Admitted) -> Admitted:
        """Record what an admitted pod holds now."""
        return await self._put(admitted, synced=False)

    def keep(self, history_length: int) -> None:
        """Keep as many changes for watchers as this from now on."""
        if len(self._history) > history_length:
            self._oldest = self._history[-history_length - 1].revision
        self._history = deque(self._history, maxlen=history_length)

    async def release(self, pod_uids: Iterable[PodUid]) -> None:
        """Take pods out of the record; unknown ones are passed over."""
        async with self._changing:
            for pod_uid in pod_uids:
                if pod_uid in self._pods:
                    revision = await self._store.delete((pod_uid,))
                    del self._pods[pod_uid]
                    self._containers = {
                        i: row for i, row in self._containers.items() if row.pod_uid != pod_uid
                    }
                    released = ad.Released(pod_uid=pod_uid)
                    self._note(ad.WatchAssignmentsResponse(released=released), revision)

    def containers(self) -> tuple[tuple[str, PodUid, str], ...]:
        """Known container ids, each with its pod and its name."""
        return tuple((row.container_id, row.pod_uid, row.name) for row in self._containers.values())

    async def add_container(self, container_id: str, pod_uid: PodUid, name: str) -> None:
        """Remember which container an id stands for."""
        row = ContainerRow(container_id=container_id, pod_uid=pod_uid, name=name)
        await self._store.add_container(row)
        self._containers[container_id] = row

    async def remove_container(self, container_id: str) -> None:
        """Forget a container id; an unknown one is not an error."""
        if self._containers.pop(container_id, None) is not None:
            await self._store.remove_container(container_id)

    async def share(self, cpus: str) -> None:
        """The CPUs of containers without exclusive CPUs are these now."""
        async with self._changing:
            if cpus != self._shared_cpus:
                revision = await self._store.advance()
                self._shared_cpus = cpus
                shared = ad.SharedCpus(cpus=cpus)
                self._note(ad.WatchAssignmentsResponse(shared_cpus=shared), revision)

    def note_health(self, told: pb.UnhealthyDevices, teller: str = "") -> None:
        """The devices that are held and not healthy are these now, of those that `teller` knows."""
        self._unhealthy_by_teller[teller] = told
        unhealthy = pb.UnhealthyDevices(
            devices=[
                d for _, each in sorted(self._unhealthy_by_teller.items()) for d in each.devices
            ]
        )
        if unhealthy != self._unhealthy:
            self._unhealthy = unhealthy
            self._wake()

    async def wait_changed(self, seen: int) -> None:
        """Wait until the revision is another than `seen`."""
        while self._revision == seen:
            await self._changed.wait()

    async def watch(self, from_revision: int) -> AsyncIterator[ad.WatchAssignmentsResponse]:
        """What is there, a marker, then every change; or every change after a revision.

        Raises RevisionTooOld when the history does not go back that far, or the watcher is
        so slow that it has been overtaken.
        """
        seen = self._revision
        told: pb.UnhealthyDevices | None = None
        if from_revision == 0:
            told = self._unhealthy
            for event in self._picture():
                yield event
        else:
            seen = from_revision
        while True:
            changed = self._changed
            for change in self._after(seen):
                seen = change.revision
                yield ad.WatchAssignmentsResponse.FromString(change.event)
            if self._unhealthy is not told:
                told = self._unhealthy
                yield ad.WatchAssignmentsResponse(unhealthy_devices=told, revision=seen)
            elif seen >= self._revision:
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
        if self._unhealthy is not None:
            events.append(
                ad.WatchAssignmentsResponse(unhealthy_devices=self._unhealthy, revision=revision)
            )
        events.append(ad.WatchAssignmentsResponse(synced=ad.Synced(), revision=revision))
        return events

    def _after(self, revision: int) -> list[Change]:
        if not same_record(revision, self._revision):
            raise RevisionTooOld(
                f"from_revision: {revision} is of another record of admitted pods, which was lost; "
                f"the node is at {self._revision}; start again from 0"
            )
        if revision > self._revision:
            raise RevisionTooOld(
                f"from_revision: {revision} is in the future; the node is at {self._revision}"
            )
        if revision < self._oldest:
            raise RevisionTooOld(
                f"from_revision: changes after {revision} are no longer kept (oldest: "
                f"{self._oldest}); start again from 0"
            )
        newest_first = takewhile(lambda change: change.revision > revision, reversed(self._history))
        return [*newest_first][::-1]

    async def _put(self, admitted: Admitted, *, synced: bool) -> Admitted:
        async with self._changing:
            numbered = admitted.at(await self._store.commit(admitted.row(), synced=synced))
            self._take(numbered)
            return numbered

    def _take(self, numbered: Admitted) -> None:
        self._pods[numbered.pod_uid] = numbered
        event = ad.WatchAssignmentsResponse(changed=numbered.message)
        self._note(event, numbered.message.revision)

    def _note(self, event: ad.WatchAssignmentsResponse, revision: int) -> None:
        event.revision = revision
        self._revision = revision
        if len(self._history) == self._history.maxlen:
            self._oldest = self._history[0].revision
        self._history.append(Change(revision, event.SerializeToString()))
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

"""What pods hold at a provider, in two phases.

An admission is tentative until its last allocation, then prepared, and final once the Topology
Manager has recorded it. One admission is open at a time. Invariants:

- what is tentative is on no disk, and gone when another admission opens;
- after a start with prepared parts nothing is decided until `reconcile` has said which of
  them were committed; the others are dropped, unless the record of that is lost.

Not safe for several threads by itself: the servicer holds `lock` around every use.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from numalign.v1 import types_pb2 as pb
from numalign_client.provider.store import PartStore, StoredPart

Containers = Mapping[str, pb.ContainerAllocation]


class InDoubt(Exception):
    """The provider restarted and was not told yet which admissions were committed."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one admission gives to the containers of one pod."""

    pod_uid: str
    containers: Containers = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What a picture changes.

    `final` are the prepared parts that stand, `committed` their pods, `released` the pods that
    hold nothing any more.
    """

    final: frozenset[str]
    committed: tuple[str, ...]
    released: tuple[str, ...]


class Books:
    """The books over a store. `revision` counts up at every change of what is final or prepared."""

    def __init__(self, store: PartStore) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.revision = 1
        self._store = store
        self._tentative: tuple[str, Part] | None = None
        self._prepared: dict[str, Part] = {}
        self._final: dict[str, Containers] = {}
        for stored in store.load():
            containers = {held.container: held for held in stored.allocations}
            if stored.admission_id:
                self._prepared[stored.admission_id] = Part(stored.pod_uid, containers)
            else:
                self._final[stored.pod_uid] = containers
        self.in_doubt = bool(self._prepared)

    def taken(self, resource: str, *, besides: str | None = None) -> frozenset[str]:
        """Ids of a resource that anybody holds, the open admission included.

        What a pod of the UID `besides` holds does not count.
        """
        return frozenset(
            i
            for uid, containers in self._by_pod()
            if uid != besides
            for held in containers.values()
            for device in held.devices
            if device.resource == resource
            for i in device.ids
        )

    def open(self, admission_id: str, pod_uid: str) -> Part:
        """The part of an admission so far; another one that is only tentative ends.

        Raises InDoubt.
        """
        self.refuse_in_doubt()
        if self._tentative is None or self._tentative[0] != admission_id:
            self._tentative = (admission_id, Part(pod_uid))
        return self._tentative[1]

    def holds(self, pod_uid: str) -> list[pb.ContainerAllocation]:
        """What each container of a pod holds, in every phase."""
        merged: dict[str, pb.ContainerAllocation] = {}
        for uid, containers in self._by_pod():
            if uid == pod_uid:
                merged.update(containers)
        return list(merged.values())

    def pods(self) -> frozenset[str]:
        """Pods with a final or prepared part."""
        return frozenset(self._final) | {part.pod_uid for part in self._prepared.values()}

    def take(self, held: pb.ContainerAllocation) -> None:
        """Give a container of the open admission what it asked for."""
        if self._tentative is None:
            raise RuntimeError("no admission is open")
        admission_id, part = self._tentative
        containers = {**part.containers, held.container: held}
        self._tentative = (admission_id, Part(part.pod_uid, containers))

    def prepare(self) -> None:
        """The open admission has everything: its part is on disk when this returns."""
        if self._tentative is None:
            raise RuntimeError("no admission is open")
        admission_id, part = self._tentative
        self._tentative = None
        if part.containers:
            self._store.put(StoredPart(part.pod_uid, admission_id, tuple(part.containers.values())))
            self._prepared[admission_id] = part
            self._note()

    def commit(self, admission_id: str) -> str | None:
        """The admission is final; its pod, or None if it is not known (any more)."""
        part = self._prepared.get(admission_id)
        if part is None:
            return None
        containers = {**self._final.get(part.pod_uid, {}), **part.containers}
        self._store.settle(part.pod_uid, admission_id, tuple(containers.values()))
        del self._prepared[admission_id]
        self._final[part.pod_uid] = containers
        self._note()
        return part.pod_uid

    def part_of(self, admission_id: str) -> Part | None:
        """The tentative or prepared part of an admission."""
        if self._tentative is not None and self._tentative[0] == admission_id:
            return self._tentative[1]
        return self._prepared.get(admission_id)

    def abort(self, admission_id: str) -> None:
        """The admission is off: its part is gone. Unknown ids are not an error."""
        if self._tentative is not None and self._tentative[0] == admission_id:
            self._tentative = None
        part = self._prepared.get(admission_id)
        if part is not None:
            self._store.drop(part.pod_uid, admission_id)
            del self._prepared[admission_id]
            self._note()

    def release(self, pod_uid: str) -> None:
        """The pod holds nothing any more. Unknown pods are not an error."""
        if pod_uid in self._final:
            self._store.drop(pod_uid, "")
            del self._final[pod_uid]
            self._note()

    def release_containers(self, pod_uid: str, names: Collection[str]) -> None:
        """Containers of a pod hold nothing any more."""
        held = self._final.get(pod_uid, {})
        kept = {name: allocation for name, allocation in held.items() if name not in names}
        if len(kept) == len(held):
            return
        if not kept:
            self.release(pod_uid)
            return
        self._store.put(StoredPart(pod_uid, "", tuple(kept.values())))
        self._final[pod_uid] = kept
        self._note()

    def take_back(self, pod_uid: str, held: pb.ContainerAllocation) -> None:
        """A container holds again what these books have lost, for good."""
        containers = {**self._final.get(pod_uid, {}), held.container: held}
        self._store.put(StoredPart(pod_uid, "", tuple(containers.values())))
        self._final[pod_uid] = containers
        self._note()

    def outcome(
        self,
        active: Collection[str],
        committed: Collection[str],
        *,
        ready: bool,
        record_lost: bool,
    ) -> Reconciled:
        """What a picture is going to change, without changing it yet.

        With `record_lost` nobody knows what was committed, so all that is prepared stands.
        """
        final = frozenset(i for i in self._prepared if record_lost or i in committed)
        pods = {self._prepared[i].pod_uid for i in final}
        lasting = pods.union(self._final)
        gone = self.pods() - lasting
        if ready:
            gone |= lasting.difference(active)
        return Reconciled(
            final=final, committed=tuple(sorted(pods - gone)), released=tuple(sorted(gone))
        )

    def reconcile(self, outcome: Reconciled) -> None:
        """Settle every prepared part, and take back what released pods hold."""
        self._tentative = None
        for admission_id in tuple(self._prepared):
            if admission_id in outcome.final:
                self.commit(admission_id)
            else:
                self.abort(admission_id)
        for pod_uid in outcome.released:
            self.release(pod_uid)
        self.in_doubt = False

    def refuse_in_doubt(self) -> None:
        """Raise InDoubt while it is not known which prepared parts were committed."""
        if self.in_doubt:
            raise InDoubt

    def _by_pod(self) -> Iterator[tuple[str, Containers]]:
        yield from self._final.items()
        for part in self._prepared.values():
            yield part.pod_uid, part.containers
        if self._tentative is not None:
            yield self._tentative[1].pod_uid, self._tentative[1].containers

    def _note(self) -> None:
        self.revision += 1
        self.changed.notify_all()

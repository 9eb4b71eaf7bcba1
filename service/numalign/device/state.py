"""What the device provider remembers: who holds which devices, and what plugins answered.

Values only; every change makes a new state. Separate from the inventory, which holds what
is true of the machine whoever is admitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from numalign.model.ids import DeviceId, PodUid
from numalign.provider.values import ContainerEdits


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRecord:
    """Devices of one resource in one container, by NUMA node; lists are ascending.

    Ids without a node stand under `WITHOUT_TOPOLOGY` (DEV-39).

    `edits` None: the plugin has not been told yet. That lasts from the allocation to the
    seal where plugins are told last, and is never seen where they are told in place.
    """

    ids_by_node: Mapping[int, tuple[DeviceId, ...]]
    edits: ContainerEdits | None = None

    def ids(self) -> frozenset[DeviceId]:
        """The distinct device ids."""
        return frozenset().union(*self.ids_by_node.values())


ContainerRecords: TypeAlias = Mapping[str, DeviceRecord]
"""Records of one container, by resource."""

Records: TypeAlias = Mapping[PodUid, Mapping[str, ContainerRecords]]
"""All records, by pod, then container, then resource."""


@dataclass(frozen=True, slots=True)
class Reusable:
    """Ids that finished init containers of one pod leave to its later containers (DEV-26)."""

    pod_uid: PodUid
    ids: Mapping[str, frozenset[DeviceId]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredDevices:
    """The part that outlives a restart: records, and the resources that were served.

    The kubelet stores healthy ids with them (DEV-44), of which it reads none (DEV-46).
    """

    records: Records = field(default_factory=dict)
    served: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """The state of the device provider.

    `allocated` holds the ids considered in use, by resource: those of all records, and what
    failed allocations took (DEV-30). A key with an empty set counts (DEV-28).
    `reusable` is not stored. `written` is what a provider that stores only where the kubelet
    does has stored last.
    """

    records: Records = field(default_factory=dict)
    allocated: Mapping[str, frozenset[DeviceId]] = field(default_factory=dict)
    reusable: Reusable | None = None
    served: tuple[str, ...] = ()
    written: StoredDevices = field(default_factory=StoredDevices)

    def container(self, pod_uid: PodUid, container: str) -> ContainerRecords:
        """Records of one container; empty if it has none."""
        return self.records.get(pod_uid, {}).get(container, {})

    def record(self, pod_uid: PodUid, container: str, resource: str) -> DeviceRecord | None:
        """The record of one resource in one container."""
        return self.container(pod_uid, container).get(resource)

    def reusable_by(self, pod_uid: PodUid, resource: str) -> frozenset[DeviceId]:
        """Ids of `resource` that the next container of the pod may take over."""
        if self.reusable is None or self.reusable.pod_uid != pod_uid:
            return frozenset()
        return self.reusable.ids.get(resource, frozenset())


def with_taken(state: DeviceState, resource: str, ids: Iterable[DeviceId]) -> DeviceState:
    """Count `ids` as in use; the resource becomes a key even without any (DEV-30)."""
    taken = state.allocated.get(resource, frozenset()).union(ids)
    return replace(state, allocated={**state.allocated, resource: taken})


def with_record(
    state: DeviceState, pod_uid: PodUid, container: str, resource: str, record: DeviceRecord
) -> DeviceState:
    """Put `record` in place of whatever the container had of `resource` (DEV-39)."""
    pod = state.records.get(pod_uid, {})
    resources = {**pod.get(container, {}), resource: record}
    return replace(state, records={**state.records, pod_uid: {**pod, container: resources}})


def with_written(state: DeviceState) -> DeviceState:
    """Mark the present records and resources as stored."""
    return replace(state, written=StoredDevices(state.records, state.served))


def pods_holding(state: DeviceState, ids: frozenset[DeviceId]) -> frozenset[PodUid]:
    """Pods that hold any of `ids`, searched over all resources by id alone (DEV-15)."""
    return frozenset(
        pod_uid
        for pod_uid, containers in state.records.items()
        if any(
            not ids.isdisjoint(held)
            for resources in containers.values()
            for record in resources.values()
            for held in record.ids_by_node.values()
        )
    )

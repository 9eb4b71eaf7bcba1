"""What is known of a kubelet's devices at one moment, and what follows from it.

Pure: an observation is a value that is replaced whenever the kubelet was asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from numalign.device.inventory import (
    HEALTHY,
    UNHEALTHY,
    WITHOUT_TOPOLOGY,
    Device,
    Endpoint,
    Inventory,
    PluginOptions,
    ResourceInventory,
)
from numalign.device.kubelet.values import PodKey, ToldDevice, ToldPod
from numalign.device.state import DeviceRecord
from numalign.model.ids import DeviceId
from numalign.provider.values import ContainerEdits


@dataclass(frozen=True, slots=True)
class Observation:
    """Devices that can be given out, held or not, and the pods that hold some.

    `complete` is false until a kubelet has told both. `known` are resources that were there
    before; one of which nothing is told any more has no healthy device, and is not forgotten.
    """

    allocatable: tuple[ToldDevice, ...] = ()
    pods: Mapping[PodKey, ToldPod] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    complete: bool = False

    def resources(self) -> frozenset[str]:
        """Every resource that is or was told of."""
        return self.known.union(device.resource for device in self._told())

    def _told(self) -> Iterable[ToldDevice]:
        yield from self.allocatable
        for pod in self.pods.values():
            for devices in pod.containers.values():
                yield from devices


def refreshed(
    before: Observation, allocatable: Iterable[ToldDevice], pods: Iterable[ToldPod]
) -> Observation:
    """The observation after the kubelet told everything anew."""
    return Observation(
        allocatable=tuple(allocatable),
        pods={pod.key: pod for pod in pods},
        known=before.resources(),
        complete=True,
    )


def with_pods(before: Observation, pods: Iterable[ToldPod]) -> Observation:
    """The observation after the kubelet told of all pods, but not of what can be given out."""
    return replace(before, pods={pod.key: pod for pod in pods}, known=before.resources())


def with_pod(before: Observation, pod: ToldPod) -> Observation:
    """The observation after the kubelet told of one pod."""
    return replace(before, pods={**before.pods, pod.key: pod}, known=before.resources())


def without_pod(before: Observation, key: PodKey) -> Observation:
    """The observation without a pod of which nothing can be relied on any more."""
    pods = {other: pod for other, pod in before.pods.items() if other != key}
    return replace(before, pods=pods, known=before.resources())


def inventory_of(observation: Observation) -> Inventory:
    """The devices as if their plugins had listed them; what is only held is not healthy."""
    devices: dict[str, dict[DeviceId, Device]] = {name: {} for name in observation.resources()}
    healthy: dict[str, set[DeviceId]] = {name: set() for name in devices}
    for told in observation.allocatable:
        _add(devices[told.resource], told, HEALTHY)
        healthy[told.resource].add(told.id)
    for pod in observation.pods.values():
        for container in pod.containers.values():
            for told in container:
                _add(devices[told.resource], told, UNHEALTHY)
    return Inventory(
        {
            name: ResourceInventory(
                devices=listed,
                healthy=frozenset(healthy[name]),
                unhealthy=frozenset(listed) - healthy[name],
                endpoint=Endpoint(options=PluginOptions()),
            )
            for name, listed in sorted(devices.items())
        }
    )


def in_use(observation: Observation) -> dict[str, frozenset[DeviceId]]:
    """The ids that pods hold, by resource; every resource is a key."""
    held: dict[str, set[DeviceId]] = {name: set() for name in observation.resources()}
    for pod in observation.pods.values():
        for container in pod.containers.values():
            for told in container:
                held[told.resource].add(told.id)
    return {name: frozenset(ids) for name, ids in held.items()}


def given(observation: Observation, key: PodKey, container: str) -> dict[str, DeviceRecord]:
    """What the kubelet gave a container, by resource; nothing is to be added to it (DEV-39)."""
    pod = observation.pods.get(key)
    by_resource: dict[str, dict[int, set[DeviceId]]] = {}
    for told in () if pod is None else pod.containers.get(container, ()):
        by_node = by_resource.setdefault(told.resource, {})
        for node in told.numa_nodes or (WITHOUT_TOPOLOGY,):
            by_node.setdefault(node, set()).add(told.id)
    for by_node in by_resource.values():
        _without_placed(by_node)
    return {
        resource: DeviceRecord(
            ids_by_node={node: tuple(sorted(ids)) for node, ids in sorted(by_node.items())},
            edits=ContainerEdits(),
        )
        for resource, by_node in sorted(by_resource.items())
    }


def _without_placed(by_node: dict[int, set[DeviceId]]) -> None:
    """Count a device that was also told on a node, on that node alone."""
    nowhere = by_node.pop(WITHOUT_TOPOLOGY, set())
    nowhere = nowhere.difference(*by_node.values())
    if nowhere:
        by_node[WITHOUT_TOPOLOGY] = nowhere


def _add(listed: dict[DeviceId, Device], told: ToldDevice, health: str) -> None:
    known = listed.get(told.id)
    if known is None:
        listed[told.id] = Device(id=told.id, numa_nodes=told.numa_nodes, health=health)
    elif told.numa_nodes is not None:
        nodes = tuple(sorted({*(known.numa_nodes or ()), *told.numa_nodes}))
        listed[told.id] = replace(known, numa_nodes=nodes)

"""Values that pass between a provider's deciding part and the rest: holdings, facts, calls.

Separate from the engine protocol so that messages and explanations can use them without
knowing what an engine is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from numalign.model.cpu_set import NO_CPUS, CpuSet
from numalign.model.ids import DeviceId, NumaId, PodUid


@dataclass(frozen=True, slots=True)
class AllocationFailure:
    """Why an allocation failed. `reason` is the kubelet's typed reason, or None (TM-48)."""

    message: str
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBlock:
    """Bytes of one memory resource booked over `numa_nodes` (ascending)."""

    numa_nodes: tuple[NumaId, ...]
    resource: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A host path that a device plugin wants in the container."""

    container_path: str
    host_path: str
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceNode:
    """A device node that a device plugin wants in the container; `permissions` of `rwm`."""

    container_path: str
    host_path: str
    permissions: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerEdits:
    """What device plugins answered for one container, as it is to be applied."""

    envs: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    cdi_devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceHolding:
    """Devices of one resource: ids per NUMA node; -1 holds the ids without topology (DEV-39)."""

    resource: str
    ids_by_node: Mapping[int, tuple[DeviceId, ...]]
    edits: ContainerEdits = field(default_factory=ContainerEdits)

    @property
    def ids(self) -> tuple[DeviceId, ...]:
        """The distinct device ids, ascending."""
        return tuple(sorted({i for ids in self.ids_by_node.values() for i in ids}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What one container holds at one provider; the parts of other providers are empty."""

    container: str
    cpus: CpuSet = NO_CPUS
    memory: tuple[MemoryBlock, ...] = ()
    devices: tuple[DeviceHolding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodHolding:
    """What a pod holds as a whole under pod-level resource management, else empty."""

    cpus: CpuSet = NO_CPUS
    memory: tuple[MemoryBlock, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginCall:
    """One call made to a device plugin, for the explanation and for recordings.

    `call` is `GetPreferredAllocation` or `Allocate`; lists are sorted, but for `response`,
    which is in the plugin's order.
    """

    container: str
    resource: str
    call: str
    devices: tuple[DeviceId, ...] = ()
    available: tuple[DeviceId, ...] = ()
    must_include: tuple[DeviceId, ...] = ()
    size: int = 0
    response: tuple[DeviceId, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds some of a NUMA node's resource; `container` empty for a whole pod."""

    pod_uid: PodUid
    container: str
    amount: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """One NUMA node seen by one resource: units are CPUs, bytes or devices."""

    node: NumaId
    capacity: int
    reserved: int
    free: int
    holders: tuple[Holder, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceFacts:
    """What stands behind the hints of one resource, for the explanation.

    `minimum_nodes` is the size a mask needs to be preferred, judged on an empty machine;
    `note` is a sentence on anything else that counted (SMT alignment, groups, health, ...).
    """

    resource: str
    requested: int
    nodes: tuple[NodeFacts, ...]
    minimum_nodes: int | None = None
    note: str = ""

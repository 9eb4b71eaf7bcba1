"""What each deciding part is told at start: the node sections of the configuration, as values.

Field names are those of machine files and recordings; the KubeletConfiguration words are
translated where the configuration is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from numalign.model.ids import DeviceId, NumaId
from numalign.model.quantity import Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologySettings:
    """Policy, scope and options of the Topology Manager, as written (checked at construction)."""

    policy: str = "none"
    scope: str = "container"
    policy_options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuSettings:
    """Policy, options and reservation of the CPU provider, as written.

    `reserved_cpus` is a CPU list (`reservedSystemCPUs`), empty if none is given.
    `reserved_milli_cpu` is the cpu entry of the node allocatable reservation, in
    thousandths; None if the entry is absent (CPU-15).
    """

    policy: str = "none"
    policy_options: Mapping[str, str] = field(default_factory=dict)
    reserved_cpus: str = ""
    reserved_milli_cpu: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedMemory:
    """One entry of `reservedMemory` (MEM-6)."""

    numa_node: NumaId
    limits: Mapping[str, Quantity]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """Policy and reservation of the memory provider, as written.

    `node_allocatable_reservation` holds its memory and huge page entries (MEM-8).
    """

    policy: str = "None"
    reserved_memory: tuple[ReservedMemory, ...] = ()
    node_allocatable_reservation: Mapping[str, Quantity] = field(default_factory=dict)


class NumaAllocationStrategy(StrEnum):
    """Which of equally good sets of NUMA nodes is taken; `none` is the kubelet's way."""

    NONE = "none"
    MOST_ALLOCATED = "most-allocated"
    LEAST_ALLOCATED = "least-allocated"


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuSwitches:
    """What the static CPU policy does beyond the kubelet's.

    `keep_shared`: a pod is refused whose exclusive CPUs would leave none shared. `reuse_init`:
    a container takes what init containers of its pod have left before other CPUs. `few_caches`:
    with `prefer-align-cpus-by-uncorecache`, whole cores of as few caches as possible.
    `few_sockets`: with `distribute-cpus-across-numa` and `align-by-socket`, CPUs are spread within
    as few sockets as possible.
    """

    keep_shared: bool = False
    reuse_init: bool = False
    few_caches: bool = False
    few_sockets: bool = False


KUBELET_CPUS = CpuSwitches()
"""Nothing beyond the kubelet's."""


class KernelHugePages(StrEnum):
    """What becomes of a pod whose huge pages the books have and the kernel has not."""

    IGNORE = "ignore"
    DEFER = "defer"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The switches that take placement beyond the kubelet's; each default is the kubelet's way.

    `cpu_and_memory_first`: under policy `best-effort` devices do not draw CPUs and memory apart.
    `retry_in_pod_scope`: a pod that scope `container` refuses is decided on as a whole before that.
    """

    numa_allocation_strategy: NumaAllocationStrategy = NumaAllocationStrategy.NONE
    cpu_and_memory_first: bool = False
    retry_in_pod_scope: bool = False
    cpu: CpuSwitches = KUBELET_CPUS
    kernel_huge_pages: KernelHugePages = KernelHugePages.IGNORE


KUBELET_PLACEMENT = Placement()
"""No switch is on."""


class PreferredAllocation(StrEnum):
    """What a static plugin answers to GetPreferredAllocation (the recordings' README)."""

    NONE = "none"
    LOWEST_ID = "lowest-id"
    HIGHEST_ID = "highest-id"
    TOO_MANY = "too-many"
    TOO_FEW = "too-few"
    UNKNOWN_IDS = "unknown-ids"
    EMPTY = "empty"
    ERROR = "error"


class PluginPresence(StrEnum):
    """Whether a static plugin is there: registered, its connection ended, or it never came."""

    REGISTERED = "registered"
    DISCONNECTED = "disconnected"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticDevice:
    """A device of a static inventory. `numa_nodes` None: no topology; (): one without nodes."""

    id: DeviceId
    numa_nodes: tuple[int, ...] | None = None
    healthy: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticResource:
    """One resource of a static inventory and how its plugin behaves."""

    resource: str
    devices: tuple[StaticDevice, ...] = ()
    preferred_allocation: PreferredAllocation = PreferredAllocation.NONE
    allocate_error: str | None = None
    plugin: PluginPresence = PluginPresence.REGISTERED

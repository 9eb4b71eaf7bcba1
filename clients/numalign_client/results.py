"""What the services answer, as plain values.

Separate from the messages so that a program reads numbers, words and tuples. Loaded with the
first answer: a program that only makes a client does not pay for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from numalign.v1 import types_pb2 as pb


class Verdict(StrEnum):
    """The answer to "may this pod start?"."""

    ADMITTED = "admitted"
    REJECTED = "rejected"
    DEFERRED = "deferred"


@dataclass(frozen=True, slots=True)
class Affinity:
    """The NUMA nodes that were chosen (None: any), and whether fewer could not have done."""

    numa_nodes: tuple[int, ...] | None
    preferred: bool


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    """`size` bytes of `memory` or `hugepages-<size>`, booked over a group of NUMA nodes."""

    numa_nodes: tuple[int, ...]
    resource: str
    size: int


@dataclass(frozen=True, slots=True)
class Mount:
    """A path of the host to mount."""

    container_path: str
    host_path: str
    read_only: bool


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """A device node to make; `permissions` are some of `rwm`."""

    container_path: str
    host_path: str
    permissions: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerEdits:
    """What device plugins want changed in a container."""

    envs: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    cdi_devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceAllocation:
    """Devices of one resource: their ids, and the same by NUMA node (-1: without topology)."""

    resource: str
    ids: tuple[str, ...]
    by_numa_node: Mapping[int, tuple[str, ...]]
    edits: ContainerEdits


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerAllocation:
    """What one container was given.

    `cpus` are its own CPUs as a list such as `2-5,10`; empty: it runs on the shared ones.
    `affinity` None: none was chosen.
    """

    container: str
    cpus: str = ""
    memory: tuple[MemoryBlock, ...] = ()
    devices: tuple[DeviceAllocation, ...] = ()
    affinity: Affinity | None = None

    @property
    def cpu_ids(self) -> frozenset[int]:
        """The container's own CPUs by number."""
        return cpu_ids(self.cpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAllocation:
    """What a pod with pod-level resources was given as a whole."""

    cpus: str = ""
    memory: tuple[MemoryBlock, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """Requests and limits by resource name, as quantities such as `500m`."""

    requests: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodResources:
    """What a pod is allocated, by container, and its pod-level section (None: it has none)."""

    containers: Mapping[str, Amounts]
    pod: Amounts | None = None


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that has to end first."""

    pod_uid: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision on one pod.

    - `verdict`, and for anything but an admission the `handler` that refused or deferred, the
      kubelet's `reason` and `message`; `handler_reason` is the handler's own for a resize;
    - `retry_after`: seconds after which to ask again, for a deferral;
    - `allocations`: what each container holds, init containers first, in the order of the pod;
    - `victims`: pods to end first, in that order;
    - `warnings`: what one should know all the same;
    - `already_admitted`: this is what the pod has; `resize_pending`: it asks for other CPU or
      memory than `resources` says;
    - `explanation`: the message, as far as it was asked for;
    - `uid_invented`: the pod had no uid, and `pod_uid` was made up from namespace and name.
    """

    verdict: Verdict
    pod_uid: str
    uid_invented: bool = False
    handler: str = ""
    reason: str = ""
    message: str = ""
    handler_reason: str = ""
    retry_after: float | None = None
    allocations: tuple[ContainerAllocation, ...] = ()
    pod_allocation: PodAllocation | None = None
    resources: PodResources | None = None
    victims: tuple[Victim, ...] = ()
    warnings: tuple[str, ...] = ()
    already_admitted: bool = False
    resize_pending: bool = False
    dry_run: bool = False
    revision: int = 0
    explanation: pb.Explanation = field(default_factory=pb.Explanation)

    @property
    def admitted(self) -> bool:
        """Whether the pod may start."""
        return self.verdict is Verdict.ADMITTED

    @property
    def summary(self) -> str:
        """The explanation as a paragraph; empty unless it was asked for."""
        return self.explanation.summary

    def __str__(self) -> str:
        """The verdict, with reason and message if there are any."""
        why = ": ".join(filter(None, (self.reason, self.message)))
        return f"{self.verdict} ({why})" if why else self.verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What to apply to a container before it starts; empty `cpus` or `mems`: leave them alone."""

    cpus: str
    exclusive_cpus: bool
    mems: str
    edits: ContainerEdits
    allocation: ContainerAllocation


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedPod:
    """A pod as it is recorded. `problems` say what it was given and has lost since."""

    pod_uid: str
    namespace: str
    name: str
    owner: str
    revision: int
    qos_class: str
    allocations: tuple[ContainerAllocation, ...]
    pod_allocation: PodAllocation | None
    resources: PodResources | None
    containers: tuple[str, ...]
    config_generation: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnhealthyDevice:
    """A device that a container holds and that is not healthy; `health` says how."""

    pod_uid: str
    container: str
    resource: str
    id: str
    health: str


@dataclass(frozen=True, slots=True)
class Admissions:
    """The admitted pods in order of admission, at a revision.

    `shared_cpus` are those that others share, `unhealthy_devices` are held by these pods.
    """

    pods: tuple[AdmittedPod, ...]
    revision: int
    shared_cpus: str
    unhealthy_devices: tuple[UnhealthyDevice, ...] = ()


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Pods that were released, those named that are not admitted, and the revision afterwards."""

    released: tuple[str, ...]
    unknown: tuple[str, ...]
    revision: int


@dataclass(frozen=True, slots=True)
class Existing:
    """A pod that is admitted, as part of the first picture of a watch."""

    pod: AdmittedPod
    revision: int


@dataclass(frozen=True, slots=True)
class Synced:
    """The first picture is complete."""

    revision: int


@dataclass(frozen=True, slots=True)
class Changed:
    """A pod was admitted, or what it holds changed."""

    pod: AdmittedPod
    revision: int


@dataclass(frozen=True, slots=True)
class Released:
    """A pod was released."""

    pod_uid: str
    revision: int


@dataclass(frozen=True, slots=True)
class SharedCpus:
    """The CPUs that containers without CPUs of their own run on changed."""

    cpus: str
    revision: int


@dataclass(frozen=True, slots=True)
class UnhealthyDevices:
    """The devices that are held and not healthy now, all of them."""

    devices: tuple[UnhealthyDevice, ...]
    revision: int


AssignmentEvent: TypeAlias = Existing | Synced | Changed | Released | SharedCpus | UnhealthyDevices
"""One event of a watch."""


def cpu_ids(cpus: str) -> frozenset[int]:
    """The numbers in a CPU list such as `2-5,10`."""
    ids: set[int] = set()
    for part in filter(None, cpus.split(",")):
        first, _, last = part.partition("-")
        ids.update(range(int(first), int(last or first) + 1))
    return frozenset(ids)

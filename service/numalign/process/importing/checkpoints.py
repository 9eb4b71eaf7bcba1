"""A kubelet's state files, read from its root directory, as what pods hold.

Separate from putting it into our own state: these are files of somebody else, and each is
verified by its checksum before a word of it counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf.message import DecodeError

from numalign.config.settings import Settings
from numalign.device.plugin_host.wire import edits_from_message
from numalign.errors import StateError
from numalign.kube.deviceplugin.v1beta1 import api_pb2 as dp
from numalign.kubelet_files.cpu_checkpoint import read_cpu_checkpoint
from numalign.kubelet_files.device_checkpoint import DeviceEntry, read_device_checkpoint
from numalign.kubelet_files.memory_checkpoint import read_memory_checkpoint
from numalign.model.cpu_set import NO_CPUS
from numalign.model.ids import PodUid
from numalign.provider.engine import Recorded
from numalign.provider.values import ContainerEdits, DeviceHolding, Holding, PodHolding

CPU_FILE = Path("cpu_manager_state")
MEMORY_FILE = Path("memory_manager_state")
DEVICE_FILES = (
    Path("device-plugins/kubelet_internal_checkpoint"),
    Path("kubelet_internal_checkpoint"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one file says: what each pod holds; and, for devices, healthy ids by resource.

    `problem` says why nothing of the file counts; empty if all of it does.
    """

    path: Path
    pods: tuple[Recorded, ...] = ()
    problem: str = ""
    registered: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_cpu(root: Path, settings: Settings) -> Found:
    """`cpu_manager_state` (CPU-24..CPU-30)."""
    path = root / CPU_FILE
    try:
        gate = settings.gates.pod_level_resource_managers
        read = read_cpu_checkpoint(state_text(path), settings.cpu.policy, gate, {})
    except StateError as error:
        return Found(path=path, problem=str(error))
    uids = sorted({*read.assignments, *read.pod_assignments})
    return Found(
        path=path,
        pods=tuple(
            Recorded(
                pod_uid=uid,
                holdings=tuple(
                    Holding(container=name, cpus=cpus)
                    for name, cpus in sorted(read.assignments.get(uid, {}).items())
                ),
                pod_holding=PodHolding(cpus=read.pod_assignments.get(uid, NO_CPUS)),
            )
            for uid in uids
        ),
    )


def read_memory(root: Path, settings: Settings) -> Found:
    """`memory_manager_state` (MEM-67..MEM-73). Pods on single NUMA nodes come first."""
    path = root / MEMORY_FILE
    try:
        gate = settings.gates.pod_level_resource_managers
        read = read_memory_checkpoint(state_text(path), settings.memory.policy, gate)
    except StateError as error:
        return Found(path=path, problem=str(error))
    pods = (
        Recorded(
            pod_uid=uid,
            holdings=tuple(
                Holding(container=name, memory=blocks)
                for name, blocks in sorted(read.assignments.get(uid, {}).items())
            ),
            pod_holding=PodHolding(memory=read.pod_assignments.get(uid, ())),
        )
        for uid in sorted({*read.assignments, *read.pod_assignments})
    )
    return Found(path=path, pods=tuple(sorted(pods, key=_is_wide)))


def read_devices(root: Path) -> Found:
    """`kubelet_internal_checkpoint` (DEV-44), with what plugins answered for each container."""
    path = next((root / name for name in DEVICE_FILES if (root / name).exists()), None)
    if path is None:
        return Found(path=root / DEVICE_FILES[0], problem="there is no such file")
    try:
        read = read_device_checkpoint(state_text(path))
    except StateError as error:
        return Found(path=path, problem=str(error))
    by_pod: dict[PodUid, dict[str, list[DeviceEntry]]] = defaultdict(lambda: defaultdict(list))
    for entry in read.entries:
        by_pod[entry.pod_uid][entry.container].append(entry)
    notes: list[str] = []
    pods = tuple(
        Recorded(
            pod_uid=uid,
            holdings=tuple(
                Holding(container=name, devices=tuple(_devices(entries, notes)))
                for name, entries in sorted(containers.items())
            ),
        )
        for uid, containers in sorted(by_pod.items())
    )
    return Found(path=path, pods=pods, registered=read.registered, notes=tuple(notes))


def _devices(entries: Iterable[DeviceEntry], notes: list[str]) -> Iterable[DeviceHolding]:
    for entry in entries:
        edits = ContainerEdits()
        try:
            answer = dp.ContainerAllocateResponse.FromString(entry.allocate_response or b"")
            edits = edits_from_message(answer)
        except DecodeError as error:
            notes.append(
                f"pod {entry.pod_uid}, container {entry.container}: what the plugin of "
                f"{entry.resource} answered cannot be read: {error}"
            )
        yield DeviceHolding(resource=entry.resource, ids_by_node=entry.ids_by_node, edits=edits)


def state_text(path: Path) -> str:
    """The text of a state file. Raises StateError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise StateError(f"not UTF-8: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise StateError(_reason(error)) from error


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    return error.strerror or str(error)


def _is_wide(recorded: Recorded) -> bool:
    blocks = (*recorded.pod_holding.memory, *(b for h in recorded.holdings for b in h.memory))
    return any(len(block.numa_nodes) > 1 for block in blocks)

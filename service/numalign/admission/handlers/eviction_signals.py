"""Eviction signals: what they observe, and which node condition each raises (EVI-7, EVI-8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from numalign.model.quantity import Quantity

MEMORY_PRESSURE = "MemoryPressure"
DISK_PRESSURE = "DiskPressure"
PID_PRESSURE = "PIDPressure"

MEMORY = "memory.available"
ALLOCATABLE_MEMORY = "allocatableMemory.available"
NODEFS = "nodefs"
IMAGEFS = "imagefs"
CONTAINERFS = "containerfs"
AVAILABLE, INODES_FREE = "available", "inodesFree"
PID = "pid.available"

CONDITION_OF: Mapping[str, str] = {
    MEMORY: MEMORY_PRESSURE,
    ALLOCATABLE_MEMORY: MEMORY_PRESSURE,
    PID: PID_PRESSURE,
} | {
    f"{fs}.{kind}": DISK_PRESSURE
    for fs in (NODEFS, IMAGEFS, CONTAINERFS)
    for kind in (AVAILABLE, INODES_FREE)
}
"""The condition that each signal raises (EVI-7)."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What there is and what there could be; `time` in seconds, None where it is not known."""

    available: Quantity
    capacity: Quantity
    time: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStats:
    """Memory of the node, or of the system container `pods`, in bytes; None is unknown."""

    available: int | None = None
    working_set: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FsStats:
    """A filesystem: bytes and inodes; None is unknown."""

    available: int | None = None
    capacity: int | None = None
    inodes_free: int | None = None
    inodes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStats:
    """The stats summary of a node; None is unknown."""

    memory: MemoryStats = MemoryStats()
    pods_memory: MemoryStats = MemoryStats()
    node_fs: FsStats = FsStats()
    image_fs: FsStats = FsStats()
    container_fs: FsStats = FsStats()
    max_pid: int | None = None
    processes: int | None = None


def observations(stats: NodeStats) -> dict[str, Observation]:
    """What each signal observes; a signal with an unknown number is left out (EVI-8)."""
    observed: dict[str, Observation] = {}

    def note(signal: str, available: int | None, capacity: int | None) -> None:
        if available is not None and capacity is not None:
            observed[signal] = Observation(
                Quantity.from_int(available), Quantity.from_int(capacity)
            )

    for signal, memory in ((MEMORY, stats.memory), (ALLOCATABLE_MEMORY, stats.pods_memory)):
        if memory.available is not None and memory.working_set is not None:
            note(signal, memory.available, memory.available + memory.working_set)
    for fs, fs_stats in (
        (NODEFS, stats.node_fs),
        (IMAGEFS, stats.image_fs),
        (CONTAINERFS, stats.container_fs),
    ):
        note(f"{fs}.{AVAILABLE}", fs_stats.available, fs_stats.capacity)
        note(f"{fs}.{INODES_FREE}", fs_stats.inodes_free, fs_stats.inodes)
    if stats.max_pid is not None and stats.processes is not None:
        note(PID, stats.max_pid - stats.processes, stats.max_pid)
    return observed

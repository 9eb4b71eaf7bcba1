"""The layouts of `memory_manager_state` (MEM-67) and their printed forms (MEM-69)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from numalign.kubelet_files.go_collection import INT_KEY, TEXT_KEY, ListOf, MapOf, PointerTo
from numalign.kubelet_files.go_shape import INT, TEXT, UINT64
from numalign.kubelet_files.go_struct import Member, StructOf

TYPE_NAME = "(*state.MemoryManagerCheckpoint)"
"""What the kubelet prints for both versions."""

OLDER_TYPE_NAME = "(*state.MemoryManagerCheckpointV1)"
"""What may have been printed for version 1 (MEM-71)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTable:
    """One memory resource of one NUMA node, in bytes (machine state, MEM-67)."""

    total: int
    system_reserved: int
    allocatable: int
    reserved: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDocument:
    """One NUMA node of the machine state, as it lies in the file."""

    number_of_assignments: int
    memory_map: Mapping[str, MemoryTable | None] | None
    cells: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockDocument:
    """One booked block, as it lies in the file."""

    numa_affinity: tuple[int, ...] | None
    type: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEntryDocument:
    """The blocks of a whole pod, as they lie in the file."""

    memory_blocks: tuple[BlockDocument, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDocument:
    """The file; members that are absent are empty, not null (MEM-71)."""

    policy_name: str = ""
    machine_state: Mapping[int, NodeDocument | None] | None = field(default_factory=dict)
    entries: Mapping[str, Mapping[str, tuple[BlockDocument, ...] | None] | None] | None = field(
        default_factory=dict
    )
    pod_entries: Mapping[str, PodEntryDocument] | None = field(default_factory=dict)
    checksum: int = 0


def _bytes_member(name: str, key: str, attribute: str) -> Member:
    return Member(name=name, kind="uint64", key=key, attribute=attribute, shape=UINT64)


_TABLE = StructOf(
    MemoryTable,
    (
        _bytes_member("TotalMemSize", "total", "total"),
        _bytes_member("SystemReserved", "systemReserved", "system_reserved"),
        _bytes_member("Allocatable", "allocatable", "allocatable"),
        _bytes_member("Reserved", "reserved", "reserved"),
        _bytes_member("Free", "free", "free"),
    ),
)
_NODE = StructOf(
    NodeDocument,
    (
        Member(
            name="NumberOfAssignments",
            kind="int",
            key="numberOfAssignments",
            attribute="number_of_assignments",
            shape=INT,
        ),
        Member(
            name="MemoryMap",
            kind="map[v1.ResourceName]*state.MemoryTable",
            key="memoryMap",
            attribute="memory_map",
            shape=MapOf(TEXT_KEY, PointerTo(_TABLE)),
        ),
        Member(name="Cells", kind="[]int", key="cells", attribute="cells", shape=ListOf(INT)),
    ),
)
_BLOCK = StructOf(
    BlockDocument,
    (
        Member(
            name="NUMAAffinity",
            kind="[]int",
            key="numaAffinity",
            attribute="numa_affinity",
            shape=ListOf(INT),
        ),
        Member(name="Type", kind="v1.ResourceName", key="type", attribute="type", shape=TEXT),
        _bytes_member("Size", "size", "size"),
    ),
)
_POD_ENTRY = StructOf(
    PodEntryDocument,
    (
        Member(
            name="MemoryBlocks",
            kind="[]state.Block",
            key="memoryBlocks",
            attribute="memory_blocks",
            shape=ListOf(_BLOCK),
        ),
    ),
)
_HEAD = (
    Member(name="PolicyName", kind="string", key="policyName", attribute="policy_name", shape=TEXT),
    Member(
        name="MachineState",
        kind="state.NUMANodeMap",
        key="machineState",
        attribute="machine_state",
        shape=MapOf(INT_KEY, PointerTo(_NODE)),
    ),
    Member(
        name="Entries",
        kind="state.ContainerMemoryAssignments",
        key="entries",
        attribute="entries",
        shape=MapOf(TEXT_KEY, MapOf(TEXT_KEY, ListOf(_BLOCK))),
        omit_empty=True,
    ),
)
_POD_ENTRIES = Member(
    name="PodEntries",
    kind="state.PodMemoryAssignments",
    key="podEntries",
    attribute="pod_entries",
    shape=MapOf(TEXT_KEY, _POD_ENTRY),
    omit_empty=True,
)
_CHECKSUM = Member(
    name="Checksum", kind="checksum.Checksum", key="checksum", attribute="checksum", shape=UINT64
)

VERSION_1 = StructOf(MemoryDocument, (*_HEAD, _CHECKSUM))
VERSION_2 = StructOf(MemoryDocument, (*_HEAD, _POD_ENTRIES, _CHECKSUM))

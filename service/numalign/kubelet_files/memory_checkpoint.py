"""The memory manager's state file: reading and writing it (MEM-67 to MEM-73).

What the file means is a `MemoryCheckpoint`; how it is laid out is in `memory_layout`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from numalign.kubelet_files.errors import CorruptCheckpoint, UnusableCheckpoint
from numalign.kubelet_files.fnv import fnv1a_32
from numalign.kubelet_files.go_json import Json, parse_json
from numalign.kubelet_files.go_shape import Faults
from numalign.kubelet_files.memory_layout import (
    OLDER_TYPE_NAME,
    TYPE_NAME,
    VERSION_1,
    VERSION_2,
    BlockDocument,
    MemoryDocument,
    MemoryTable,
    NodeDocument,
    PodEntryDocument,
)
from numalign.model.ids import NumaId, PodUid
from numalign.model.quoting import quoted
from numalign.provider.values import MemoryBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMemory:
    """One NUMA node of the machine state: its tables by resource, and its group of nodes."""

    number_of_assignments: int
    memory_map: Mapping[str, MemoryTable]
    cells: tuple[NumaId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCheckpoint:
    """What a memory manager state file says. `hash_input` is as in CpuCheckpoint."""

    policy_name: str
    machine_state: Mapping[NumaId, NodeMemory] = field(default_factory=dict)
    assignments: Mapping[PodUid, Mapping[str, tuple[MemoryBlock, ...]]] = field(
        default_factory=dict
    )
    pod_assignments: Mapping[PodUid, tuple[MemoryBlock, ...]] = field(default_factory=dict)
    hash_input: str | None = None


def read_memory_checkpoint(
    text: str, configured_policy: str, pod_level_resource_managers: bool
) -> MemoryCheckpoint:
    """Decode and verify the text of `memory_manager_state` (MEM-71 to MEM-73).

    Raises CheckpointError with the kubelet's reason. A node or table that is null, over which
    the kubelet would crash later, is refused here.
    """
    document, hash_input = _load(parse_json(text), pod_level_resource_managers)
    if document.policy_name != configured_policy:
        raise UnusableCheckpoint(
            f"[memorymanager] configured policy {quoted(configured_policy)} differs from "
            f"state checkpoint policy {quoted(document.policy_name)}"
        )
    return MemoryCheckpoint(
        policy_name=document.policy_name,
        machine_state={
            NumaId(node): _node(node, entry)
            for node, entry in (document.machine_state or {}).items()
        },
        assignments={
            PodUid(pod): {name: _blocks(blocks) for name, blocks in (of or {}).items()}
            for pod, of in (document.entries or {}).items()
        },
        pod_assignments={
            PodUid(pod): _blocks(entry.memory_blocks)
            for pod, entry in (document.pod_entries or {}).items()
        },
        hash_input=hash_input,
    )


def memory_hash_input(checkpoint: MemoryCheckpoint, pod_level_resource_managers: bool) -> str:
    """The text that the checksum of `checkpoint` is computed over (MEM-69)."""
    return _printed(_document(checkpoint), pod_level_resource_managers)


def write_memory_checkpoint(checkpoint: MemoryCheckpoint, pod_level_resource_managers: bool) -> str:
    """The text of `memory_manager_state`, byte for byte as the kubelet writes it (MEM-67)."""
    document = _document(checkpoint)
    layout = VERSION_2 if pod_level_resource_managers else VERSION_1
    checksum = fnv1a_32(_printed(document, pod_level_resource_managers))
    return layout.encode(replace(document, checksum=checksum))


def _load(root: Json, pod_level_resource_managers: bool) -> tuple[MemoryDocument, str | None]:
    """Try version 2 where pod-level management is on, then version 1 (MEM-71, MEM-72)."""
    if pod_level_resource_managers:
        faults = Faults()
        document = VERSION_2.decode(root, MemoryDocument(), faults)
        printed = _printed(document, pod_level_resource_managers=True)
        if faults.first is None and document.checksum == fnv1a_32(printed):
            return document, printed
    faults = Faults()
    document = VERSION_1.decode(root, MemoryDocument(), faults)
    faults.check()
    if document.checksum == 0:
        return document, None
    accepted = [_printed(document, pod_level_resource_managers=False)]
    if not pod_level_resource_managers:
        accepted.append(OLDER_TYPE_NAME + accepted[0].removeprefix(TYPE_NAME))
    for printed in accepted:
        if document.checksum == fnv1a_32(printed):
            return document, printed
    raise CorruptCheckpoint


def _node(node: int, entry: NodeDocument | None) -> NodeMemory:
    if entry is None:
        raise UnusableCheckpoint(f"machineState of NUMA node {node} is null")
    tables: dict[str, MemoryTable] = {}
    for resource, table in (entry.memory_map or {}).items():
        if table is None:
            raise UnusableCheckpoint(f"memoryMap of NUMA node {node} has no table of {resource}")
        tables[resource] = table
    return NodeMemory(
        number_of_assignments=entry.number_of_assignments,
        memory_map=tables,
        cells=tuple(NumaId(cell) for cell in entry.cells or ()),
    )


def _blocks(blocks: tuple[BlockDocument, ...] | None) -> tuple[MemoryBlock, ...]:
    return tuple(
        MemoryBlock(
            numa_nodes=tuple(NumaId(node) for node in block.numa_affinity or ()),
            resource=block.type,
            size=block.size,
        )
        for block in blocks or ()
    )


def _document(checkpoint: MemoryCheckpoint) -> MemoryDocument:
    return MemoryDocument(
        policy_name=checkpoint.policy_name,
        machine_state={
            node: NodeDocument(
                number_of_assignments=entry.number_of_assignments,
                memory_map=entry.memory_map,
                cells=entry.cells,
            )
            for node, entry in checkpoint.machine_state.items()
        },
        entries={
            pod: {name: _block_documents(blocks) for name, blocks in of.items()}
            for pod, of in checkpoint.assignments.items()
        },
        pod_entries={
            pod: PodEntryDocument(memory_blocks=_block_documents(blocks))
            for pod, blocks in checkpoint.pod_assignments.items()
        },
    )


def _block_documents(blocks: tuple[MemoryBlock, ...]) -> tuple[BlockDocument, ...]:
    return tuple(
        BlockDocument(numa_affinity=block.numa_nodes, type=block.resource, size=block.size)
        for block in blocks
    )


def _printed(document: MemoryDocument, pod_level_resource_managers: bool) -> str:
    layout = VERSION_2 if pod_level_resource_managers else VERSION_1
    return TYPE_NAME + layout.dump(replace(document, checksum=0))

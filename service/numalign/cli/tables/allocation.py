"""What containers hold, in cells: the same words in answers, lists and drawings."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from numalign.cli.tables.amounts import bytes_text, hint_text, is_hugepages, nodes_text
from numalign.v1 import claims_pb2 as cl
from numalign.v1 import types_pb2 as pb

SHARED = "shared"


def allocation_table(
    allocations: Iterable[pb.ContainerAllocation], pod: pb.PodAllocation | None = None
) -> Table:
    """A row for each container, and one for the pod where it holds something as a whole."""
    table = Table("container", "CPUs", "memory", "devices", "affinity", box=None, pad_edge=True)
    if pod is not None and (pod.cpus or pod.memory):
        table.add_row("(the pod)", cpus_cell(pod.cpus), memory_cell(pod.memory), "-", "")
    for held in allocations:
        table.add_row(
            held.container,
            cpus_cell(held.cpus),
            memory_cell(held.memory),
            devices_cell(held),
            hint_text(held.affinity) if held.HasField("affinity") else "-",
        )
    for column in table.columns:
        column.overflow = "fold"
    return table


def cpus_cell(cpus: str) -> str:
    """Exclusive CPUs, or that there are none."""
    return cpus or SHARED


def memory_cell(blocks: Iterable[pb.MemoryBlock]) -> str:
    """Blocks, a line each: `1Gi on {0}`, `64Mi hugepages-2Mi on {0,1}`.

    A block whose bytes all went on to a later container is left out.
    """
    return "\n".join(_block(block) for block in blocks if block.size) or "-"


def devices_cell(held: pb.ContainerAllocation) -> str:
    """Devices, a line each: `example.com/gpu: gpu-0 on {0}`, then `claim c1: d.example/pool/x`."""
    lines = [*map(_device, held.devices), *map(_claim, held.claims)]
    return "\n".join(lines) or "-"


def _block(block: pb.MemoryBlock) -> str:
    kind = f" {block.resource}" if is_hugepages(block.resource) else ""
    return f"{bytes_text(block.size)}{kind} on {nodes_text(block.numa_nodes)}"


def _claim(claim: cl.ClaimAllocation) -> str:
    devices = [f"{device.driver}/{device.pool}/{device.device}" for device in claim.devices]
    return f"claim {claim.name}: {', '.join(devices) or 'no devices'}"


def _device(device: pb.DeviceAllocation) -> str:
    nodes = sorted({entry.numa_node for entry in device.by_numa_node if entry.numa_node >= 0})
    place = f" on {nodes_text(nodes)}" if nodes else ""
    return f"{device.resource}: {', '.join(device.ids)}{place}"

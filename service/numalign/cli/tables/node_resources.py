"""What a node has and what of it is free, NUMA node by NUMA node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from numalign.cli.tables.amounts import bytes_text, nodes_text
from numalign.v1 import node_resources_pb2 as nr

if TYPE_CHECKING:
    from rich.console import RenderableType


def resources_tables(picture: nr.NodeResources) -> Iterator[RenderableType]:
    """A row for each resource of each NUMA node, then the shared CPUs of the whole node."""
    table = Table("node", "resource", "all", "reserved", "held", "free", "largest", box=None)
    for node in picture.numa_nodes:
        for index, row in enumerate(_rows(node)):
            table.add_row(nodes_text((node.numa_node,)) if index == 0 else "", *row)
    for column in table.columns:
        column.overflow = "fold"
    yield table
    if not picture.HasField("cpus"):
        yield Text(f"\nCPUs unknown   revision {picture.revision}")
        return
    cpus = picture.cpus
    yield Text(
        f"\nshared CPUs {cpus.shared_pool or '-'}   requested of them "
        f"{cpus.shared_requested_millicores / 1000:g}   free for exclusive use {cpus.free}   "
        f"revision {picture.revision}"
    )


def _rows(node: nr.NumaNodeResources) -> Iterator[tuple[str, ...]]:
    cpus, largest = node.cpus, node.largest_shape
    if node.HasField("cpus"):
        lists = (cpus.all, cpus.reserved, cpus.exclusive, cpus.free)
        yield ("cpu", *(each or "-" for each in lists), str(largest.cpus))
    for memory in node.memory:
        group = f" in group {nodes_text(memory.group)}" if memory.group else ""
        yield (
            memory.resource,
            bytes_text(memory.allocatable),
            "-",
            bytes_text(memory.reserved),
            bytes_text(memory.free) + group,
            bytes_text(largest.memory.get(memory.resource, 0)),
        )
    for devices in node.devices:
        yield (
            devices.resource,
            str(devices.capacity),
            "-",
            str(devices.allocatable - len(devices.free)),
            ",".join(devices.free) or "-",
            str(largest.devices.get(devices.resource, 0)),
        )

"""The zones of a NodeResourceTopology, one for each NUMA node. Pure.

`available` is the most that one container can get of a resource from this NUMA node alone, so that
a scheduler that compares it with what a container asks for comes to the same as numalign under the
policy `single-numa-node`. A resource that is not managed by NUMA node (CPU or Memory Manager policy
`none`) does not tie a container to a node: each zone then offers all that the machine has, because
schedulers take a zone without CPU or memory for one in which no pod fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from numalign.model.cpu_set import CpuSet
from numalign.model.machine import Machine, NumaNode
from numalign.model.quantity import Format, Quantity
from numalign.v1.node_resources_pb2 import NodeResources, NumaNodeResources

_KIB = 1024
_MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Amount:
    """One resource of one zone; CPUs, bytes or devices."""

    resource: str
    capacity: int
    allocatable: int
    available: int

    def document(self) -> dict[str, Any]:
        """As the object has it."""
        return {
            "name": self.resource,
            "capacity": _quantity(self.capacity),
            "allocatable": _quantity(self.allocatable),
            "available": _quantity(self.available),
        }


def zones(machine: Machine, resources: NodeResources) -> list[dict[str, Any]]:
    """The zones, by the id of their NUMA nodes."""
    told = {node.numa_node: node for node in resources.numa_nodes}
    nodes = sorted(machine.numa_nodes, key=lambda node: node.id)
    makers = (_Cpus(nodes, resources), _Memory(nodes, resources))
    made = []
    for node in nodes:
        here = told.get(node.id, NumaNodeResources(numa_node=node.id))
        amounts = [amount for maker in makers for amount in maker.of(node, here)]
        amounts += _devices(here)
        zone: dict[str, Any] = {"name": zone_name(node.id), "type": "Node"}
        if costs := list(_costs(node, nodes)):
            zone["costs"] = costs
        zone["resources"] = [amount.document() for amount in amounts]
        made.append(zone)
    return made


def zone_name(numa_node: int) -> str:
    """The name of a NUMA node's zone."""
    return f"node-{numa_node}"


class _Cpus:
    """CPUs by NUMA node."""

    def __init__(self, nodes: Sequence[NumaNode], resources: NodeResources) -> None:
        self._managed = resources.cpus.policy not in {"", "none"}
        self._reserved = CpuSet.parse(resources.cpus.reserved)
        self._all = len(_cpus_of(*nodes) - self._reserved)

    def of(self, node: NumaNode, here: NumaNodeResources) -> Iterator[Amount]:
        """The CPUs of one node; nothing for a node without any."""
        cpus = _cpus_of(node)
        if not cpus:
            return
        if self._managed:
            allocatable = len(cpus - self._reserved)
            yield Amount("cpu", len(cpus), allocatable, here.largest_shape.cpus)
        else:
            yield Amount("cpu", len(cpus), self._all, self._all)


class _Memory:
    """Memory and huge pages by NUMA node."""

    def __init__(self, nodes: Sequence[NumaNode], resources: NodeResources) -> None:
        self._managed = any(node.memory for node in resources.numa_nodes)
        self._all: dict[str, int] = {}
        for node in nodes:
            for resource, size in _sizes(node).items():
                self._all[resource] = self._all.get(resource, 0) + size

    def of(self, node: NumaNode, here: NumaNodeResources) -> Iterator[Amount]:
        """The memory of one node."""
        sizes = _sizes(node)
        if not self._managed:
            for resource, whole in self._all.items():
                yield Amount(resource, sizes.get(resource, 0), whole, whole)
            return
        for table in here.memory:
            most = here.largest_shape.memory[table.resource]
            capacity = sizes.get(table.resource, table.allocatable)
            yield Amount(table.resource, capacity, table.allocatable, most)


def _devices(here: NumaNodeResources) -> Iterator[Amount]:
    for devices in here.devices:
        most = here.largest_shape.devices[devices.resource]
        yield Amount(devices.resource, devices.capacity, devices.allocatable, most)


def _cpus_of(*nodes: NumaNode) -> CpuSet:
    return CpuSet.of(thread for node in nodes for core in node.cores for thread in core.threads)


def _sizes(node: NumaNode) -> dict[str, int]:
    """Bytes by memory resource. Memory in huge pages is no memory besides."""
    pages = {
        f"hugepages-{_quantity(pool.page_size_kib * _KIB)}": pool.page_size_kib * _KIB * pool.count
        for pool in node.hugepages
    }
    return {_MEMORY: node.memory_bytes - sum(pages.values()), **pages}


def _costs(node: NumaNode, nodes: Sequence[NumaNode]) -> Iterator[dict[str, Any]]:
    """What the kernel says that memory of each node costs from this one.

    Its rows have an entry for each node that is online, in the order of their ids.
    """
    row = node.distances or ()
    if len(row) == len(nodes):
        for other, distance in zip(nodes, row, strict=True):
            yield {"name": zone_name(other.id), "value": distance}


def _quantity(number: int) -> str:
    return Quantity.from_int(number, Format.BINARY_SI).canonical()

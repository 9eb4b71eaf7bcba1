"""What allocations look like in the pod resources interface (PR-7, PR-8, PR-9, PR-11, PR-12).

Pure functions over what a provider says that a container holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from numalign.admission.pod_resources.values import ClaimedDevice, Held, HeldDevices, HeldMemory
from numalign.model.cpu_set import CpuSet
from numalign.provider.values import MemoryBlock

WITHOUT_TOPOLOGY = -1
"""Stands for a NUMA node where a device has none (DEV-39)."""


def held_devices(
    resource: str, ids_by_node: Mapping[int, Iterable[str]]
) -> tuple[HeldDevices, ...]:
    """One entry for each device and NUMA node; one without topology where it has none.

    In order of id, then node. Ids are never grouped (PR-7, PR-12).
    """
    nodes_of: dict[str, set[int]] = {}
    for node, ids in ids_by_node.items():
        for device in ids:
            nodes_of.setdefault(device, set()).add(node)
    return tuple(
        HeldDevices(resource=resource, ids=(device,), numa_nodes=where)
        for device, nodes in sorted(nodes_of.items())
        for where in _places(nodes)
    )


def held(
    cpus: CpuSet,
    memory: Iterable[MemoryBlock],
    devices: Iterable[tuple[str, Mapping[int, Iterable[str]]]],
) -> Held:
    """Exclusive CPUs, one entry for each memory block with all of its nodes, and devices."""
    return Held(
        devices=tuple(
            entry for resource, by_node in devices for entry in held_devices(resource, by_node)
        ),
        cpus=tuple(cpus),
        memory=tuple(
            HeldMemory(resource=block.resource, size=block.size, numa_nodes=block.numa_nodes)
            for block in memory
        ),
    )


def with_cumulated_names(devices: Iterable[ClaimedDevice]) -> tuple[tuple[str, ...], ...]:
    """The CDI names told for each device of a claim: those of its driver up to it (PR-11)."""
    told: dict[str, tuple[str, ...]] = {}
    names = []
    for device in devices:
        told[device.driver] = told.get(device.driver, ()) + device.cdi_names
        names.append(told[device.driver])
    return tuple(names)


def _places(nodes: set[int]) -> list[tuple[int, ...] | None]:
    """The topologies to tell of a device: each node by itself, or none at all."""
    if nodes == {WITHOUT_TOPOLOGY}:
        return [None]
    return [(node,) for node in sorted(nodes - {WITHOUT_TOPOLOGY})]

"""The picture of the node, from the books of the built-in providers.

It only adds up and takes away what the books say; what could be given out is the providers'
to know.
"""

from __future__ import annotations

from numalign.model.cpu_set import CpuSet
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import node_resources_pb2 as nr

_MILLI = 1000


def node_resources(
    revision: int,
    cpu: hp.CpuState,
    memory: hp.MemoryState,
    device: hp.DeviceState,
    shared_millicores: int,
) -> nr.NodeResources:
    """The node at `revision`, with what is asked of its shared CPUs in thousandths."""
    nodes: dict[int, nr.NumaNodeResources] = {}

    def node(numa_node: int) -> nr.NumaNodeResources:
        return nodes.setdefault(numa_node, nr.NumaNodeResources(numa_node=numa_node))

    cpus = node_cpus(cpu, shared_millicores)
    for entry in cpu.nodes:
        _add_cpus(node(entry.numa_node), entry, cpus)
    for table in memory.nodes:
        _add_memory(node(table.numa_node), table)
    for resource in device.resources:
        for numa_node in sorted({n for d in resource.devices for n in d.numa_nodes if n in nodes}):
            _add_devices(node(numa_node), resource)
    for found in nodes.values():
        found.largest_shape.SetInParent()
    return nr.NodeResources(
        revision=revision,
        cpus=cpus,
        numa_nodes=[nodes[numa_node] for numa_node in sorted(nodes)],
        devices=[_devices(resource, None) for resource in device.resources],
    )


def node_cpus(state: hp.CpuState, shared_millicores: int) -> nr.NodeCpus:
    """The CPUs of the whole node."""
    everything = CpuSet.parse(state.all_cpus)
    reserved = CpuSet.parse(state.reserved_cpus)
    managed = state.policy != "none"
    pool = CpuSet.parse(state.default_cpus) if managed else everything
    shared = pool - reserved
    asked = -(-shared_millicores // _MILLI)
    return nr.NodeCpus(
        policy=state.policy,
        all=str(everything),
        reserved=str(reserved),
        exclusive=str(everything - reserved - shared),
        shared=str(shared),
        shared_pool=str(pool),
        shared_requested_millicores=shared_millicores,
        free=max(0, len(shared) - asked) if managed else 0,
    )


def _add_cpus(node: nr.NumaNodeResources, entry: hp.CpuNode, cpus: nr.NodeCpus) -> None:
    here = CpuSet.parse(entry.cpus)
    node.cpus.all = entry.cpus
    node.cpus.reserved = str(here & CpuSet.parse(cpus.reserved))
    node.cpus.exclusive = str(here & CpuSet.parse(cpus.exclusive))
    node.cpus.free = entry.free
    node.largest_shape.cpus = entry.largest


def _add_memory(node: nr.NumaNodeResources, state: hp.NumaNodeMemory) -> None:
    # A node that is in use belongs to its group: only a group of itself serves it alone.
    group = [] if list(state.cells) == [state.numa_node] else list(state.cells)
    in_group = bool(group) and state.number_of_assignments > 0
    for table in state.tables:
        node.memory.add(
            resource=table.resource,
            allocatable=table.allocatable,
            reserved=table.reserved,
            free=table.free,
            group=group,
        )
        node.largest_shape.memory[table.resource] = 0 if in_group else table.free


def _add_devices(node: nr.NumaNodeResources, resource: hp.DeviceResource) -> None:
    devices = _devices(resource, node.numa_node)
    node.devices.append(devices)
    node.largest_shape.devices[resource.resource] = len(devices.free)


def _devices(resource: hp.DeviceResource, numa_node: int | None) -> nr.NodeDevices:
    """The devices of one NUMA node, or (None) all of them."""
    here = [d for d in resource.devices if numa_node is None or numa_node in d.numa_nodes]
    taken = set(resource.allocated)
    # The devices of a plugin that is gone keep their last health, and cannot be given out.
    healthy = [d.id for d in here if d.healthy] if resource.connected else []
    return nr.NodeDevices(
        resource=resource.resource,
        capacity=len(here),
        allocatable=len(healthy),
        free=[device for device in healthy if device not in taken],
    )

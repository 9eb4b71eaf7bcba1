"""Whether the books of a node agree: the record, what each provider holds, and what callers know.

One function over messages, shared by the crash test (five processes) and the race test (one).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from numalign.model.cpu_set import CpuSet
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb

Held = dict[str, pb.ContainerAllocation]
"""What each container of a pod holds, without its affinity; nothing held is left out."""


def own_faults(state: hp.GetStateResponse) -> list[str]:
    """Every way in which the books of one provider contradict themselves, at any moment."""
    match state.WhichOneof("state"):
        case "cpu":
            return _cpu_faults(state.cpu)
        case "memory":
            return _memory_faults(state.memory)
        case _:
            return _device_faults(state.device)


def faults_of(
    listing: ad.ListAdmissionsResponse, states: Iterable[hp.GetStateResponse]
) -> list[str]:
    """Every way in which record and books contradict each other or themselves."""
    faults: list[str] = []
    by_provider: dict[str, dict[str, Held]] = defaultdict(lambda: defaultdict(dict))
    for state in states:
        kind = state.WhichOneof("state")
        faults += own_faults(state)
        if kind == "cpu":
            for cpu in state.cpu.assignments:
                by_provider[kind][cpu.pod_uid][cpu.container] = pb.ContainerAllocation(
                    container=cpu.container, cpus=cpu.cpus
                )
        elif kind == "memory":
            for memory in state.memory.assignments:
                by_provider[kind][memory.pod_uid][memory.container] = pb.ContainerAllocation(
                    container=memory.container, memory=memory.blocks
                )
        else:
            for device in state.device.assignments:
                by_provider["device"][device.pod_uid][device.container] = pb.ContainerAllocation(
                    container=device.container, devices=device.devices
                )
    recorded = {record.pod_uid: record for record in listing.admissions}
    for provider, pods in by_provider.items():
        faults += [
            f"{provider}: pod {uid} holds {dict(held)} and is not admitted"
            for uid, held in pods.items()
            if uid not in recorded
        ]
    for uid, record in recorded.items():
        together: Held = defaultdict(pb.ContainerAllocation)
        for pods in by_provider.values():
            for container, part in pods.get(uid, {}).items():
                together[container].MergeFrom(part)
        if held_by(record.allocations) != dict(together):
            faults.append(
                f"pod {uid} is recorded with {held_by(record.allocations)}, "
                f"and the providers hold {dict(together)}"
            )
    return faults


def held_by(allocations: Iterable[pb.ContainerAllocation]) -> Held:
    """What the containers hold, by name."""
    held: Held = {}
    for allocation in allocations:
        part = pb.ContainerAllocation()
        part.CopyFrom(allocation)
        part.ClearField("affinity")
        if part.cpus or part.memory or part.devices:
            held[part.container] = part
    return held


def _cpu_faults(books: hp.CpuState) -> list[str]:
    faults = []
    free = CpuSet.parse(books.all_cpus)
    holders: dict[tuple[str, str], CpuSet] = {}
    for assignment in books.assignments:
        cpus = CpuSet.parse(assignment.cpus)
        for holder, others in holders.items():
            # A container may hold what an init container of the same pod held before it.
            if others & cpus and holder[0] != assignment.pod_uid:
                faults.append(f"cpu: {others & cpus} is held by {holder} and {assignment.pod_uid}")
        holders[assignment.pod_uid, assignment.container] = cpus
        free = free - cpus
        if cpus & CpuSet.parse(books.reserved_cpus):
            faults.append(f"cpu: {assignment.pod_uid} holds reserved CPUs of {cpus}")
    if free != CpuSet.parse(books.default_cpus):
        faults.append(f"cpu: {free} is not held, but {books.default_cpus} is shared")
    return faults


def _memory_faults(books: hp.MemoryState) -> list[str]:
    faults = []
    held: dict[str, int] = defaultdict(int)
    for assignment in books.assignments:
        for block in assignment.blocks:
            held[block.resource] += block.size
    reserved: dict[str, int] = defaultdict(int)
    for node in books.nodes:
        for table in node.tables:
            reserved[table.resource] += table.reserved
            if table.free + table.reserved != table.allocatable:
                faults.append(f"memory: node {node.numa_node} does not add up: {table}")
            if table.allocatable + table.system_reserved > table.total:
                faults.append(f"memory: node {node.numa_node} gives more than it has: {table}")
    faults += [
        f"memory: {held[resource]} of {resource} is held, but {reserved[resource]} is booked"
        for resource in {*held, *reserved}
        if held[resource] != reserved[resource]
    ]
    return faults


def _device_faults(books: hp.DeviceState) -> list[str]:
    faults = []
    holders: dict[tuple[str, str], str] = {}
    for assignment in books.assignments:
        for device in assignment.devices:
            for id_ in device.ids:
                other = holders.setdefault((device.resource, id_), assignment.pod_uid)
                if other != assignment.pod_uid:
                    faults.append(f"device: {id_} is held by {other} and {assignment.pod_uid}")
    for resource in books.resources:
        held = {id_ for name, id_ in holders if name == resource.resource}
        if held != set(resource.allocated):
            faults.append(f"device: {held} is held, but {resource.allocated} is counted")
    return faults

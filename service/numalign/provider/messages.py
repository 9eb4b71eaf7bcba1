"""Holdings, plugin calls and facts to and from their wire form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from numalign.errors import Deferred
from numalign.model.cpu_set import CpuSet
from numalign.model.ids import DeviceId, NumaId, PodUid
from numalign.model.pod import Pod
from numalign.provider.engine import Lost, Recorded
from numalign.provider.values import (
    AllocationFailure,
    ContainerEdits,
    DeviceHolding,
    DeviceNode,
    Holding,
    MemoryBlock,
    Mount,
    PluginCall,
    PodHolding,
    ResourceFacts,
)
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb


def block_to_message(block: MemoryBlock) -> pb.MemoryBlock:
    """One memory block."""
    return pb.MemoryBlock(numa_nodes=block.numa_nodes, resource=block.resource, size=block.size)


def block_from_message(message: pb.MemoryBlock) -> MemoryBlock:
    """One memory block."""
    return MemoryBlock(
        numa_nodes=tuple(NumaId(n) for n in message.numa_nodes),
        resource=message.resource,
        size=message.size,
    )


def edits_to_message(edits: ContainerEdits) -> pb.ContainerEdits:
    """What plugins want changed in a container."""
    return pb.ContainerEdits(
        envs=edits.envs,
        mounts=[
            pb.Mount(container_path=m.container_path, host_path=m.host_path, read_only=m.read_only)
            for m in edits.mounts
        ],
        device_nodes=[
            pb.DeviceNode(
                container_path=d.container_path,
                host_path=d.host_path,
                permissions=d.permissions,
            )
            for d in edits.device_nodes
        ],
        annotations=edits.annotations,
        cdi_devices=edits.cdi_devices,
    )


def edits_from_message(message: pb.ContainerEdits) -> ContainerEdits:
    """What plugins want changed in a container."""
    return ContainerEdits(
        envs=dict(message.envs),
        mounts=tuple(
            Mount(container_path=m.container_path, host_path=m.host_path, read_only=m.read_only)
            for m in message.mounts
        ),
        device_nodes=tuple(
            DeviceNode(
                container_path=d.container_path,
                host_path=d.host_path,
                permissions=d.permissions,
            )
            for d in message.device_nodes
        ),
        annotations=dict(message.annotations),
        cdi_devices=tuple(message.cdi_devices),
    )


def devices_to_message(holding: DeviceHolding) -> pb.DeviceAllocation:
    """The devices of one resource."""
    return pb.DeviceAllocation(
        resource=holding.resource,
        ids=holding.ids,
        by_numa_node=[
            pb.NumaDevices(numa_node=node, ids=sorted(ids))
            for node, ids in sorted(holding.ids_by_node.items())
        ],
        edits=edits_to_message(holding.edits),
    )


def devices_from_message(message: pb.DeviceAllocation) -> DeviceHolding:
    """The devices of one resource."""
    by_node: Mapping[int, tuple[DeviceId, ...]] = {
        entry.numa_node: tuple(DeviceId(i) for i in entry.ids) for entry in message.by_numa_node
    }
    return DeviceHolding(
        resource=message.resource, ids_by_node=by_node, edits=edits_from_message(message.edits)
    )


def holding_to_message(holding: Holding) -> pb.ContainerAllocation:
    """What one container holds."""
    return pb.ContainerAllocation(
        container=holding.container,
        cpus=str(holding.cpus),
        memory=[block_to_message(block) for block in holding.memory],
        devices=[devices_to_message(devices) for devices in holding.devices],
    )


def pod_holding_to_message(holding: PodHolding) -> pb.PodAllocation:
    """What a pod holds as a whole."""
    return pb.PodAllocation(
        cpus=str(holding.cpus), memory=[block_to_message(block) for block in holding.memory]
    )


def holding_from_message(message: pb.ContainerAllocation) -> Holding:
    """What one container holds. CPU lists come from numalign itself, so they parse."""
    return Holding(
        container=message.container,
        cpus=CpuSet.parse(message.cpus),
        memory=tuple(block_from_message(block) for block in message.memory),
        devices=tuple(devices_from_message(devices) for devices in message.devices),
    )


def pod_holding_from_message(message: pb.PodAllocation) -> PodHolding:
    """What a pod holds as a whole."""
    return PodHolding(
        cpus=CpuSet.parse(message.cpus),
        memory=tuple(block_from_message(block) for block in message.memory),
    )


def recorded_from_message(message: hp.RecordedPod, pod: Pod | None) -> Recorded:
    """What the record says of a pod; `pod` is what its bytes were read as, if there are any."""
    return Recorded(
        pod_uid=PodUid(message.pod_uid),
        holdings=tuple(holding_from_message(each) for each in message.allocations),
        pod_holding=pod_holding_from_message(message.pod_allocation),
        finished=frozenset(message.finished_containers),
        pod=pod,
    )


def lost_to_message(pod_uid: PodUid, lost: Lost) -> hp.LostAllocation:
    """What a pod cannot have back, or lacks."""
    return hp.LostAllocation(
        pod_uid=pod_uid, container=lost.container, message=lost.message, differs=lost.differs
    )


def call_to_message(call: PluginCall) -> pb.PluginCall:
    """One call made to a device plugin."""
    return pb.PluginCall(
        container=call.container,
        resource=call.resource,
        call=call.call,
        devices=call.devices,
        available=call.available,
        must_include=call.must_include,
        size=call.size,
        response=call.response,
        error=call.error or "",
    )


def deferral_to_message(deferred: Deferred) -> hp.Deferral:
    """Why it is too early to judge a pod."""
    message = hp.Deferral(reason=deferred.reason, message=str(deferred))
    message.retry_after.FromMilliseconds(round(deferred.retry_after * 1000))
    return message


def deferral_from_message(message: hp.Deferral) -> Deferred:
    """Why it is too early to judge a pod."""
    seconds = message.retry_after.ToMilliseconds() / 1000
    return Deferred(message.reason, message.message, seconds)


def facts_to_messages(provider: str, facts: Iterable[ResourceFacts]) -> list[pb.ResourceFacts]:
    """What stands behind the hints of a provider."""
    return [
        pb.ResourceFacts(
            provider=provider,
            resource=fact.resource,
            requested=fact.requested,
            nodes=[
                pb.NodeFacts(
                    numa_node=node.node,
                    capacity=node.capacity,
                    reserved=node.reserved,
                    free=node.free,
                    holders=[
                        pb.Holder(pod_uid=h.pod_uid, container=h.container, amount=h.amount)
                        for h in node.holders
                    ],
                )
                for node in fact.nodes
            ],
            minimum_nodes=fact.minimum_nodes or 0,
            note=fact.note,
        )
        for fact in facts
    ]


def failure_to_message(failure: AllocationFailure | None) -> hp.AllocationFailure | None:
    """Why an allocation failed; None: it did not."""
    if failure is None:
        return None
    return hp.AllocationFailure(reason=failure.reason or "", message=failure.message)

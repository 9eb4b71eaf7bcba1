"""From the messages that the services answer to the values of `results`."""

from __future__ import annotations

from collections.abc import Iterable

from grpc import StatusCode

from numalign.v1 import admission_pb2 as ad
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import types_pb2 as pb
from numalign_client.errors import AdmissionError
from numalign_client.objects import GivenPod
from numalign_client.results import (
    Admissions,
    AdmittedPod,
    Affinity,
    Amounts,
    AssignmentEvent,
    Changed,
    ContainerAllocation,
    ContainerEdits,
    Decision,
    DeviceAllocation,
    DeviceNode,
    Existing,
    MemoryBlock,
    Mount,
    PodAllocation,
    PodResources,
    Preparation,
    Reconciliation,
    Released,
    SharedCpus,
    Synced,
    UnhealthyDevice,
    UnhealthyDevices,
    Verdict,
    Victim,
)

_VERDICTS = {
    pb.VERDICT_ADMITTED: Verdict.ADMITTED,
    pb.VERDICT_REJECTED: Verdict.REJECTED,
    pb.VERDICT_DEFERRED: Verdict.DEFERRED,
}


def decision(message: ad.AdmitResponse, pod: GivenPod, *more_warnings: str) -> Decision:
    """The decision on `pod`. Raises AdmissionError for a verdict that is none known here."""
    return Decision(
        verdict=verdict_of(message.verdict),
        pod_uid=pod.uid,
        uid_invented=pod.uid_invented,
        handler=message.handler,
        reason=message.reason,
        message=message.message,
        handler_reason=message.handler_reason,
        retry_after=seconds_of(message),
        allocations=allocations_of(message.allocations),
        pod_allocation=pod_allocation_of(message),
        resources=_resources(message),
        victims=tuple(Victim(v.pod_uid, v.namespace, v.name) for v in message.victims),
        warnings=(*message.warnings, *more_warnings),
        already_admitted=message.already_admitted,
        resize_pending=message.resize_pending,
        dry_run=message.dry_run,
        revision=message.revision,
        explanation=message.explanation,
    )


def preparation(message: ad.PrepareContainerResponse) -> Preparation:
    """What to apply to a container."""
    return Preparation(
        cpus=message.cpus,
        exclusive_cpus=message.exclusive_cpus,
        mems=message.mems,
        edits=_edits(message.edits),
        allocation=_allocation(message.allocation),
    )


def admissions(message: ad.ListAdmissionsResponse) -> Admissions:
    """The admitted pods."""
    return Admissions(
        tuple(map(_admitted_pod, message.admissions)),
        message.revision,
        message.shared_cpus,
        _unhealthy(message.unhealthy_devices),
    )


def reconciliation(message: ad.ReconcileResponse) -> Reconciliation:
    """What was released."""
    return Reconciliation(
        tuple(message.released_pod_uids), tuple(message.unknown_pod_uids), message.revision
    )


def assignment_event(message: ad.WatchAssignmentsResponse) -> AssignmentEvent | None:
    """The event; None for one of a kind that this client does not know."""
    match message.WhichOneof("event"):
        case "existing":
            return Existing(_admitted_pod(message.existing), message.revision)
        case "synced":
            return Synced(message.revision)
        case "changed":
            return Changed(_admitted_pod(message.changed), message.revision)
        case "released":
            return Released(message.released.pod_uid, message.revision)
        case "shared_cpus":
            return SharedCpus(message.shared_cpus.cpus, message.revision)
        case "unhealthy_devices":
            devices = _unhealthy(message.unhealthy_devices.devices)
            return UnhealthyDevices(devices, message.revision)
    return None


def verdict_of(value: pb.Verdict.ValueType) -> Verdict:
    """The verdict. Raises AdmissionError for one that is none known here."""
    verdict = _VERDICTS.get(value)
    if verdict is None:
        raise AdmissionError(
            StatusCode.INTERNAL,
            f"the answer has a verdict that this client does not know: {value}",
        )
    return verdict


def _unhealthy(devices: Iterable[pb.UnhealthyDevice]) -> tuple[UnhealthyDevice, ...]:
    return tuple(
        UnhealthyDevice(
            pod_uid=device.pod_uid,
            container=device.container,
            resource=device.resource,
            id=device.id,
            health=device.health,
        )
        for device in devices
    )


def seconds_of(message: ad.AdmitResponse | dc.DecisionRecord) -> float | None:
    """Seconds after which to ask again; None where that is not said."""
    if not message.HasField("retry_after"):
        return None
    return message.retry_after.seconds + message.retry_after.nanos / 1e9


def _admitted_pod(record: pb.AdmissionRecord) -> AdmittedPod:
    return AdmittedPod(
        pod_uid=record.pod_uid,
        namespace=record.namespace,
        name=record.name,
        owner=record.owner,
        revision=record.revision,
        qos_class=record.qos_class,
        allocations=allocations_of(record.allocations),
        pod_allocation=pod_allocation_of(record),
        resources=_resources(record),
        containers=tuple(container.name for container in record.containers),
        config_generation=record.config_generation,
        problems=tuple(record.problems),
    )


def allocations_of(
    messages: Iterable[pb.ContainerAllocation],
) -> tuple[ContainerAllocation, ...]:
    """What containers were given."""
    return tuple(map(_allocation, messages))


def _allocation(message: pb.ContainerAllocation) -> ContainerAllocation:
    return ContainerAllocation(
        container=message.container,
        cpus=message.cpus,
        memory=_memory(message.memory),
        devices=tuple(
            DeviceAllocation(
                resource=devices.resource,
                ids=tuple(devices.ids),
                by_numa_node={group.numa_node: tuple(group.ids) for group in devices.by_numa_node},
                edits=_edits(devices.edits),
            )
            for devices in message.devices
        ),
        affinity=_affinity(message.affinity) if message.HasField("affinity") else None,
    )


def _affinity(hint: pb.Hint) -> Affinity:
    if not hint.HasField("mask"):
        return Affinity(None, hint.preferred)
    nodes = tuple(node for node in range(hint.mask.bit_length()) if hint.mask >> node & 1)
    return Affinity(nodes, hint.preferred)


def _memory(blocks: Iterable[pb.MemoryBlock]) -> tuple[MemoryBlock, ...]:
    return tuple(MemoryBlock(tuple(b.numa_nodes), b.resource, b.size) for b in blocks)


def pod_allocation_of(
    message: ad.AdmitResponse | pb.AdmissionRecord | dc.DecisionRecord,
) -> PodAllocation | None:
    """What the pod was given as a whole; None where it was not."""
    if not message.HasField("pod_allocation"):
        return None
    whole = message.pod_allocation
    return PodAllocation(cpus=whole.cpus, memory=_memory(whole.memory))


def _resources(message: ad.AdmitResponse | pb.AdmissionRecord) -> PodResources | None:
    if not message.HasField("resources"):
        return None
    resources = message.resources
    return PodResources(
        containers={c.container: _amounts(c.amounts) for c in resources.containers},
        pod=_amounts(resources.pod) if resources.HasField("pod") else None,
    )


def _amounts(message: pb.ResourceAmounts) -> Amounts:
    return Amounts(requests=dict(message.requests), limits=dict(message.limits))


def _edits(message: pb.ContainerEdits) -> ContainerEdits:
    return ContainerEdits(
        envs=dict(message.envs),
        mounts=tuple(Mount(m.container_path, m.host_path, m.read_only) for m in message.mounts),
        device_nodes=tuple(
            DeviceNode(node.container_path, node.host_path, node.permissions)
            for node in message.device_nodes
        ),
        annotations=dict(message.annotations),
        cdi_devices=tuple(message.cdi_devices),
    )

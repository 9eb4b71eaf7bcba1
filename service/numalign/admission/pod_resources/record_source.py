"""The source of pod resources: admitted pods from the mirror, allocatable from the providers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from numalign.admission.pod_resources import listing
from numalign.admission.pod_resources.from_allocations import held
from numalign.admission.pod_resources.mirror import AdmissionMirror
from numalign.admission.pod_resources.values import (
    NOTHING,
    ClaimedDevice,
    Held,
    HeldClaim,
    Kind,
    ListedContainer,
    ListedPod,
)
from numalign.model.cpu_set import CpuSet
from numalign.model.ids import PodUid
from numalign.provider.messages import block_from_message
from numalign.v1 import claims_pb2 as cl
from numalign.v1 import topology_pb2 as tm
from numalign.v1 import topology_pb2_grpc as tm_grpc
from numalign.v1 import types_pb2 as pb

_KINDS = {
    pb.CONTAINER_KIND_INIT: Kind.INIT,
    pb.CONTAINER_KIND_SIDECAR: Kind.SIDECAR,
    pb.CONTAINER_KIND_APP: Kind.APP,
}


class RecordSource:
    """A `PodResourcesSource` over one Topology Manager.

    A pod that ended is released, and then in no record: every known pod is active.
    """

    def __init__(self, mirror: AdmissionMirror, topology: tm_grpc.TopologyManagerAsyncStub) -> None:
        self._mirror = mirror
        self._topology = topology

    async def active_pods(self) -> Sequence[ListedPod]:
        """Every admitted pod. Raises Unavailable."""
        return [listed_pod(record) for record in (await self._mirror.pods()).values()]

    async def all_pods(self) -> Sequence[ListedPod]:
        """Every admitted pod. Raises Unavailable."""
        return await self.active_pods()

    async def free_ended(self) -> None:
        """Nothing: what ended was freed as it was released."""

    async def find(self, namespace: str, name: str) -> ListedPod | None:
        """The admitted pod of that name. Raises Unavailable."""
        return listing.find_pod(await self.active_pods(), namespace, name)

    def held(self, pod_uid: PodUid, container: str) -> Held:
        """What a container was given."""
        record = self._mirror.known(pod_uid)
        for allocation in () if record is None else record.allocations:
            if allocation.container == container:
                given = _held(allocation.cpus, allocation.memory, allocation.devices)
                return replace(given, claims=tuple(map(_claim, allocation.claims)))
        return NOTHING

    async def allocatable(self) -> Held:
        """What the providers can give out. Raises AioRpcError where one does not answer."""
        response = await self._topology.GetAllocatable(tm.GetAllocatableRequest())
        return _held(response.cpus, response.memory, response.devices)


def listed_pod(record: pb.AdmissionRecord) -> ListedPod:
    """A recorded pod, with its containers in the order of the pod."""
    return ListedPod(
        uid=PodUid(record.pod_uid),
        name=record.name,
        namespace=record.namespace,
        containers=tuple(
            ListedContainer(container.name, _KINDS[container.kind])
            for container in record.containers
        ),
    )


def _held(
    cpus: str, memory: Iterable[pb.MemoryBlock], devices: Iterable[pb.DeviceAllocation]
) -> Held:
    return held(
        CpuSet.parse(cpus),
        (block_from_message(block) for block in memory),
        ((entry.resource, _by_node(entry)) for entry in devices),
    )


def _claim(claim: cl.ClaimAllocation) -> HeldClaim:
    return HeldClaim(
        name=claim.name,
        namespace=claim.namespace,
        devices=tuple(
            ClaimedDevice(
                driver=device.driver,
                pool=device.pool,
                device=device.device,
                share_id=device.share_id if device.HasField("share_id") else None,
                cdi_names=tuple(device.cdi_devices),
            )
            for device in claim.devices
        ),
    )


def _by_node(entry: pb.DeviceAllocation) -> Mapping[int, Sequence[str]]:
    return {node.numa_node: node.ids for node in entry.by_numa_node}

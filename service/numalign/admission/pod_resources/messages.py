"""What containers hold, as messages of both versions of the interface."""

from __future__ import annotations

from collections.abc import Iterable

from numalign.admission.pod_resources.from_allocations import with_cumulated_names
from numalign.admission.pod_resources.values import Held, HeldClaim, HeldDevices, ListedPod
from numalign.kube.podresources.v1 import api_pb2 as v1
from numalign.kube.podresources.v1alpha1 import api_pb2 as v1alpha1


def container_message(name: str, held: Held) -> v1.ContainerResources:
    """One container in v1."""
    return v1.ContainerResources(
        name=name,
        devices=_devices(held.devices),
        cpu_ids=held.cpus,
        memory=_memory(held),
        dynamic_resources=[_claim(claim) for claim in held.claims],
    )


def pod_message(pod: ListedPod, containers: Iterable[v1.ContainerResources]) -> v1.PodResources:
    """One pod in v1."""
    return v1.PodResources(name=pod.name, namespace=pod.namespace, containers=containers)


def allocatable_message(held: Held) -> v1.AllocatableResourcesResponse:
    """What the node can give out."""
    return v1.AllocatableResourcesResponse(
        devices=_devices(held.devices), cpu_ids=held.cpus, memory=_memory(held)
    )


def alpha_container_message(name: str, held: Held) -> v1alpha1.ContainerResources:
    """One container in v1alpha1: its devices."""
    return v1alpha1.ContainerResources(
        name=name,
        devices=[
            v1alpha1.ContainerDevices(resource_name=devices.resource, device_ids=devices.ids)
            for devices in held.devices
        ],
    )


def alpha_pod_message(
    pod: ListedPod, containers: Iterable[v1alpha1.ContainerResources]
) -> v1alpha1.PodResources:
    """One pod in v1alpha1."""
    return v1alpha1.PodResources(name=pod.name, namespace=pod.namespace, containers=containers)


def _devices(devices: Iterable[HeldDevices]) -> list[v1.ContainerDevices]:
    return [
        v1.ContainerDevices(
            resource_name=entry.resource,
            device_ids=entry.ids,
            topology=_topology(entry.numa_nodes),
        )
        for entry in devices
    ]


def _memory(held: Held) -> list[v1.ContainerMemory]:
    return [
        v1.ContainerMemory(
            memory_type=block.resource, size=block.size, topology=_topology(block.numa_nodes)
        )
        for block in held.memory
    ]


def _topology(nodes: tuple[int, ...] | None) -> v1.TopologyInfo | None:
    if nodes is None:
        return None
    return v1.TopologyInfo(nodes=[v1.NUMANode(ID=node) for node in nodes])


def _claim(claim: HeldClaim) -> v1.DynamicResource:
    return v1.DynamicResource(
        claim_name=claim.name,
        claim_namespace=claim.namespace,
        claim_resources=[
            v1.ClaimResource(
                cdi_devices=[v1.CDIDevice(name=name) for name in names],
                driver_name=device.driver,
                pool_name=device.pool,
                device_name=device.device,
                share_id=device.share_id,
            )
            for device, names in zip(
                claim.devices, with_cumulated_names(claim.devices), strict=True
            )
        ],
    )

"""What a pod's status says of the devices that its containers hold (DEV-50). Pure.

Separate from the results, which say what numalign says: this is how Kubernetes puts it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from numalign_client.results import AdmittedPod, UnhealthyDevice

HEALTHY = "Healthy"


class ResourceHealth(TypedDict):
    """The health of one device."""

    resourceID: str
    health: str


class ResourceStatus(TypedDict):
    """The devices of one resource."""

    name: str
    resources: list[ResourceHealth]


def allocated_resources_status(
    pod: AdmittedPod, unhealthy: Iterable[UnhealthyDevice]
) -> dict[str, list[ResourceStatus]]:
    """`allocatedResourcesStatus` of each container that holds devices, by container name.

    `unhealthy` are devices of this and other pods, as they are listed and watched. Keys are
    those of Kubernetes' JSON.
    """
    health = {
        (device.container, device.resource, device.id): device.health
        for device in unhealthy
        if device.pod_uid == pod.pod_uid
    }
    return {
        held.container: [
            {
                "name": devices.resource,
                "resources": [
                    {
                        "resourceID": id_,
                        "health": health.get((held.container, devices.resource, id_), HEALTHY),
                    }
                    for id_ in devices.ids
                ],
            }
            for devices in held.devices
        ]
        for held in pod.allocations
        if held.devices
    }

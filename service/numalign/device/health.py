"""How the devices that pods hold are doing: what a pod's status says of them (DEV-15, DEV-50).

Two rules, chosen at start: the kubelet's, for which a device whose plugin has gone is as it was
last reported, and the one of the Pod interface, for which its health is unknown. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from numalign.device.inventory import HEALTHY, UNHEALTHY, Inventory, ResourceInventory
from numalign.device.state import DeviceState
from numalign.model.ids import DeviceId, PodUid

HEALTH_UNKNOWN = "Unknown"
"""The health of a device whose plugin has gone, or does not list it any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnhealthyDevice:
    """A device that a container holds. `health` is `Unhealthy` or `Unknown`."""

    pod_uid: PodUid
    container: str
    resource: str
    id: DeviceId
    health: str


HealthOf: TypeAlias = Callable[[Inventory, str, DeviceId], str]
"""`Healthy`, `Unhealthy` or `Unknown`, of one device of one resource."""


def last_reported(inventory: Inventory, resource: str, device: DeviceId) -> str:
    """As the kubelet says it: healthy if last reported so, or not known at all (DEV-50)."""
    known = inventory.of(resource).devices.get(device)
    return HEALTHY if known is None or known.health == HEALTHY else UNHEALTHY


def known_at_present(inventory: Inventory, resource: str, device: DeviceId) -> str:
    """Unknown where nobody lists the device at present (DEV-T14, DEV-T15)."""
    known = inventory.of(resource)
    listed = known.devices.get(device)
    if listed is None or not is_served(known):
        return HEALTH_UNKNOWN
    return HEALTHY if listed.health == HEALTHY else UNHEALTHY


def is_served(known: ResourceInventory) -> bool:
    """Whether a plugin is there for the resource."""
    return known.endpoint is not None and known.endpoint.stopped_at is None


def unhealthy_devices(
    inventory: Inventory, state: DeviceState, health_of: HealthOf
) -> Iterator[UnhealthyDevice]:
    """Devices that pods hold and that are not healthy, by pod, container, resource and id."""
    unhealthy = {
        resource: found
        for resource, held in state.allocated.items()
        if (found := _not_healthy(inventory, resource, held, health_of))
    }
    if not unhealthy:
        return
    for pod_uid, containers in sorted(state.records.items()):
        for container, resources in sorted(containers.items()):
            for resource in sorted(unhealthy.keys() & resources.keys()):
                for device in sorted(unhealthy[resource].keys() & resources[resource].ids()):
                    yield UnhealthyDevice(
                        pod_uid=pod_uid,
                        container=container,
                        resource=resource,
                        id=device,
                        health=unhealthy[resource][device],
                    )


def _not_healthy(
    inventory: Inventory, resource: str, held: frozenset[DeviceId], health_of: HealthOf
) -> dict[DeviceId, str]:
    """Health by id; asks only about devices that may not be healthy."""
    known = inventory.of(resource)
    suspects = held
    if is_served(known):
        suspects = (held & (known.unhealthy or frozenset())) | (held - known.devices.keys())
    return {
        device: health
        for device in suspects
        if (health := health_of(inventory, resource, device)) != HEALTHY
    }

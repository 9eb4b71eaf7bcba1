"""How many devices of which resource a container or a pod asks for (DEV-22, DEV-28).

Separate because hints, allocation, start and explanation must all mean the same request.
"""

from __future__ import annotations

from collections.abc import Mapping

from numalign.device.inventory import Inventory
from numalign.device.state import DeviceState
from numalign.model.pod import Container, Pod
from numalign.model.pod_resources import containers_limits
from numalign.model.quantity import Quantity


def is_device_plugin_resource(inventory: Inventory, state: DeviceState, name: str) -> bool:
    """Whether plugins serve the resource now, or devices of it are in use (the terms)."""
    return inventory.of(name).healthy is not None or name in state.allocated


def container_requests(
    inventory: Inventory, state: DeviceState, container: Container
) -> dict[str, int]:
    """Devices that one container asks for, by ascending resource; zeros stay (DEV-22)."""
    return _requests(inventory, state, container.resources.limits)


def pod_requests(inventory: Inventory, state: DeviceState, pod: Pod) -> dict[str, int]:
    """Devices that the pod asks for at its greatest moment, without overhead (DEV-22)."""
    return _requests(inventory, state, containers_limits(pod))


def _requests(
    inventory: Inventory, state: DeviceState, limits: Mapping[str, Quantity]
) -> dict[str, int]:
    return {
        name: limits[name].value()
        for name in sorted(limits)
        if is_device_plugin_resource(inventory, state, name)
    }

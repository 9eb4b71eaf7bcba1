"""Plain numbers on devices, for whoever publishes metrics.

Separate from the publishing: nothing here knows a metric's name or a registry.
"""

from __future__ import annotations

from dataclasses import dataclass

from numalign.device.inventory import Inventory
from numalign.device.state import DeviceState


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceNumbers:
    """Device counts of one resource; `allocated` is what a node's allocatable must not undercut."""

    resource: str
    healthy: int
    unhealthy: int
    allocated: int


def resource_numbers(inventory: Inventory, state: DeviceState) -> tuple[ResourceNumbers, ...]:
    """Numbers of every resource that is reported or in use, by ascending name (DEV-49)."""
    return tuple(
        ResourceNumbers(
            resource=name,
            healthy=len(inventory.of(name).healthy or ()),
            unhealthy=len(inventory.of(name).unhealthy or ()),
            allocated=len(state.allocated.get(name, ())),
        )
        for name in sorted(inventory.resources.keys() | state.allocated.keys())
    )

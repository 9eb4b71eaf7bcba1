"""Capacity and allocatable of the node, as the device plugins make them (DEV-17..19).

Separate from the inventory because only this question looks at the time: a resource whose
plugin stays away is given up after the grace period.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from numalign.device.inventory import Endpoint, Inventory

STOP_GRACE_SECONDS = 300.0
"""How long a resource outlives its plugin (DEV-12)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Numbers for the node status, and the inventory without what was given up.

    `deleted` are the resources (ascending) whose capacity the node now shows as 0; if there
    are any, the state is to be stored (DEV-18).
    """

    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    deleted: tuple[str, ...]
    inventory: Inventory


def capacity(inventory: Inventory, now: float) -> Capacity:
    """Capacity and allocatable at `now`, in devices (DEV-17, DEV-18).

    A resource whose plugin is waited for is not given up.
    """
    total: dict[str, int] = {}
    allocatable: dict[str, int] = {}
    deleted: list[str] = []
    for name, resource in sorted(inventory.resources.items()):
        if resource.healthy is None and resource.unhealthy is None:
            continue
        if not resource.awaited and _is_given_up(resource.endpoint, now):
            deleted.append(name)
            continue
        total[name] = len(resource.healthy or ()) + len(resource.unhealthy or ())
        if resource.healthy is not None:
            allocatable[name] = len(resource.healthy)
    return Capacity(
        capacity=total,
        allocatable=allocatable,
        deleted=tuple(deleted),
        inventory=_without(inventory, deleted),
    )


def _is_given_up(endpoint: Endpoint | None, now: float) -> bool:
    if endpoint is None:
        return True
    return endpoint.stopped_at is not None and now - endpoint.stopped_at > STOP_GRACE_SECONDS


def _without(inventory: Inventory, deleted: list[str]) -> Inventory:
    """Forget endpoint and health sets; the device list and the allocations stay (DEV-18)."""
    if not deleted:
        return inventory
    resources = dict(inventory.resources)
    for name in deleted:
        resources[name] = replace(resources[name], healthy=None, unhealthy=None, endpoint=None)
    return Inventory(resources)

"""What the device plugins reported: resources, devices, their health, and who serves them.

These are facts about the machine and not part of the state that an admission changes, so
they survive no restart but for the names of the resources (DEV-46). Times are seconds since
the provider started.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from numalign.model.ids import DeviceId

HEALTHY = "Healthy"
"""The only health text that makes a device healthy (DEV-3)."""

UNHEALTHY = "Unhealthy"
"""What any other text means, and the text where nobody gave one."""

WITHOUT_TOPOLOGY = -1
"""Stands for a node where a device has none (DEV-39); a plugin may report it, too (DEV-31)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device as last reported. `numa_nodes` None: no topology; (): a topology without nodes."""

    id: DeviceId
    numa_nodes: tuple[int, ...] | None = None
    health: str = HEALTHY


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginOptions:
    """Which of the optional calls a plugin wants to get."""

    pre_start_required: bool = False
    get_preferred_allocation_available: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The plugin of a resource. `stopped_at` is set once its connection has ended."""

    options: PluginOptions | None = None
    stopped_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceInventory:
    """One resource. `devices` holds every listed device, whatever its health.

    `healthy` and `unhealthy` None: the resource is not a key of that table, which is not
    the same as an empty set (DEV-18, and "device plugin resource" of the terms).
    `awaited`: it was known before the start, and its plugin has listed nothing since.
    """

    devices: Mapping[DeviceId, Device] = field(default_factory=dict)
    healthy: frozenset[DeviceId] | None = None
    unhealthy: frozenset[DeviceId] | None = None
    endpoint: Endpoint | None = None
    awaited: bool = False


UNKNOWN = ResourceInventory()
"""A resource that nobody has reported."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """Every resource ever reported since the start, by name. Immutable: updates copy."""

    resources: Mapping[str, ResourceInventory] = field(default_factory=dict)

    def of(self, resource: str) -> ResourceInventory:
        """The named resource, `UNKNOWN` if nobody has reported it."""
        return self.resources.get(resource, UNKNOWN)

    def served(self) -> tuple[str, ...]:
        """Names of the resources that are a key of the healthy table, ascending."""
        return tuple(
            name for name in sorted(self.resources) if self.resources[name].healthy is not None
        )

    def with_resource(self, name: str, resource: ResourceInventory) -> Inventory:
        """This inventory with `resource` in place of whatever `name` was."""
        return Inventory({**self.resources, name: resource})


def list_received(inventory: Inventory, resource: str, devices: Iterable[Device]) -> Inventory:
    """Replace the whole device list of `resource` by what its plugin sent (DEV-14).

    Of a repeated id the last mention counts in the list; both count in the health sets.
    """
    listed = tuple(devices)
    return inventory.with_resource(
        resource,
        replace(
            inventory.of(resource),
            devices={device.id: device for device in listed},
            healthy=frozenset(d.id for d in listed if d.health == HEALTHY),
            unhealthy=frozenset(d.id for d in listed if d.health != HEALTHY),
            awaited=False,
        ),
    )


def health_changes(
    inventory: Inventory, resource: str, devices: Iterable[Device]
) -> frozenset[DeviceId]:
    """Ids in a new list whose health text differs or that were not known before (DEV-15)."""
    known = inventory.of(resource).devices
    return frozenset(d.id for d in devices if d.id not in known or known[d.id].health != d.health)


def plugin_registered(inventory: Inventory, resource: str, options: PluginOptions) -> Inventory:
    """Give `resource` a fresh endpoint; its devices stay as they are until a list (DEV-10)."""
    return inventory.with_resource(
        resource, replace(inventory.of(resource), endpoint=Endpoint(options=options))
    )


def plugin_disconnected(inventory: Inventory, resource: str, now: float) -> Inventory:
    """The plugin's stream ended at `now`: its healthy devices become unhealthy (DEV-11).

    Without an endpoint nothing changes. The last reported health texts stay (DEV-T14).
    """
    known = inventory.of(resource)
    if known.endpoint is None:
        return inventory
    return inventory.with_resource(
        resource,
        replace(
            known,
            healthy=frozenset(),
            unhealthy=(known.unhealthy or frozenset()) | (known.healthy or frozenset()),
            endpoint=replace(known.endpoint, stopped_at=now),
        ),
    )


def restored(inventory: Inventory, resources: Iterable[str], *, awaited: bool = False) -> Inventory:
    """Add the resources known before a restart: no devices, a stopped endpoint (DEV-46).

    They count as stopped since the start (time 0), and as `awaited` if so said. A resource
    that a plugin has registered since is left alone.
    """
    missing = {
        name: replace(
            inventory.of(name),
            healthy=frozenset(),
            unhealthy=frozenset(),
            endpoint=Endpoint(stopped_at=0.0),
            awaited=awaited,
        )
        for name in resources
        if inventory.of(name).healthy is None and inventory.of(name).endpoint is None
    }
    return Inventory({**inventory.resources, **missing}) if missing else inventory


def waited_out(inventory: Inventory) -> Inventory:
    """Wait for no plugin any more: from now on the kubelet's rules hold for every resource."""
    late = {
        name: replace(resource, awaited=False)
        for name, resource in inventory.resources.items()
        if resource.awaited
    }
    return Inventory({**inventory.resources, **late}) if late else inventory

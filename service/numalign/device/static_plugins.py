"""Plugins that a configuration describes: devices that never change, answers by rule.

They let a node without real plugins be decided and simulated. Separate from the inventory,
which does not know where its facts come from.
"""

from __future__ import annotations

from collections.abc import Iterable

from numalign.device.inventory import (
    HEALTHY,
    UNHEALTHY,
    Device,
    Inventory,
    PluginOptions,
    list_received,
    plugin_disconnected,
    plugin_registered,
)
from numalign.device.ports import PluginError
from numalign.model.ids import DeviceId
from numalign.model.settings import (
    PluginPresence,
    PreferredAllocation,
    StaticDevice,
    StaticResource,
)
from numalign.provider.values import ContainerEdits


def static_inventory(resources: Iterable[StaticResource]) -> Inventory:
    """The inventory after every configured plugin has done what `plugin` says (at time 0)."""
    inventory = Inventory()
    for configured in resources:
        if configured.plugin is PluginPresence.ABSENT:
            continue
        inventory = registered(inventory, configured)
        if configured.plugin is PluginPresence.DISCONNECTED:
            inventory = plugin_disconnected(inventory, configured.resource, now=0.0)
    return inventory


def registered(inventory: Inventory, configured: StaticResource) -> Inventory:
    """The plugin registers and sends its list."""
    options = PluginOptions(
        get_preferred_allocation_available=(
            configured.preferred_allocation is not PreferredAllocation.NONE
        )
    )
    return list_received(
        plugin_registered(inventory, configured.resource, options),
        configured.resource,
        static_devices(configured.devices),
    )


def static_devices(configured: Iterable[StaticDevice]) -> tuple[Device, ...]:
    """Configured devices as a plugin would list them."""
    return tuple(
        Device(
            id=device.id,
            numa_nodes=device.numa_nodes,
            health=HEALTHY if device.healthy else UNHEALTHY,
        )
        for device in configured
    )


class StaticPlugins:
    """The `DevicePlugins` port over a configuration; adds nothing to containers."""

    has_effects = False

    def __init__(self, resources: Iterable[StaticResource]) -> None:
        self.configure(resources)

    def configure(self, resources: Iterable[StaticResource]) -> None:
        """Answer by these rules from now on."""
        self._by_resource = {configured.resource: configured for configured in resources}

    async def get_preferred_allocation(
        self,
        resource: str,
        available: tuple[DeviceId, ...],
        must_include: tuple[DeviceId, ...],
        size: int,
    ) -> tuple[DeviceId, ...]:
        """The answer of the configured rule. Raises PluginError where the rule is to fail."""
        rule = self._plugin(resource).preferred_allocation
        return preferred_ids(rule, available, must_include, size)

    async def allocate(self, resource: str, ids: tuple[DeviceId, ...]) -> ContainerEdits:  # noqa: ARG002 - every id gets the same answer
        """No edits. Raises PluginError with the configured error, if there is one."""
        error = self._plugin(resource).allocate_error
        if error is not None:
            raise PluginError(error)
        return ContainerEdits()

    async def pre_start_container(self, resource: str, ids: tuple[DeviceId, ...]) -> None:  # noqa: ARG002 - no id needs anything
        """Nothing to make ready."""
        self._plugin(resource)

    def _plugin(self, resource: str) -> StaticResource:
        if resource not in self._by_resource:
            raise PluginError(f"no plugin is configured for resource {resource}")
        return self._by_resource[resource]


def preferred_ids(
    rule: PreferredAllocation,
    available: Iterable[DeviceId],
    must_include: Iterable[DeviceId],
    size: int,
) -> tuple[DeviceId, ...]:
    """What a plugin with this rule prefers; ids compare as text.

    `available` holds `must_include`. Raises PluginError for the rule that fails.
    """
    must = tuple(must_include)
    others = sorted(set(available) - set(must))
    lowest = (must + tuple(others))[: max(size, len(must))]
    match rule:
        case PreferredAllocation.NONE | PreferredAllocation.EMPTY:
            return ()
        case PreferredAllocation.LOWEST_ID:
            return lowest
        case PreferredAllocation.HIGHEST_ID:
            return (must + tuple(reversed(others)))[: max(size, len(must))]
        case PreferredAllocation.TOO_MANY:
            return must + tuple(others)
        case PreferredAllocation.TOO_FEW:
            return (must + tuple(others))[: max(size - 1, len(must))]
        case PreferredAllocation.UNKNOWN_IDS:
            return (DeviceId("no-such-device"), *lowest)
        case PreferredAllocation.ERROR:
            raise PluginError("preferred allocation failed")

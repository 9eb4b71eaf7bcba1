"""What happens to plugins, as changes of the inventory: values that are applied in turn.

Pure. Separate from the feed, which applies them when nothing is being decided.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from numalign.device.capacity import capacity
from numalign.device.inventory import (
    Device,
    Inventory,
    PluginOptions,
    health_changes,
    list_received,
    plugin_disconnected,
    plugin_registered,
    waited_out,
)
from numalign.model.ids import DeviceId


class InventoryChange(Protocol):
    """One change. `stored` says whether the kubelet writes its state file after it."""

    @property
    def stored(self) -> bool:
        """Whether the names and healthy ids as they are then are to be kept."""

    def apply(self, inventory: Inventory) -> Inventory:
        """The inventory afterwards."""

    def flipped(self, inventory: Inventory) -> frozenset[DeviceId]:
        """Devices whose health is another afterwards; `inventory` is the one before (DEV-15)."""


class _Quiet:
    """A change that says nothing about single devices and is not stored."""

    stored = False

    def flipped(self, inventory: Inventory) -> frozenset[DeviceId]:  # noqa: ARG002 - says nothing
        """None."""
        return frozenset()


@dataclass(frozen=True, slots=True)
class Registered(_Quiet):
    """A plugin was connected to (DEV-10)."""

    resource: str
    options: PluginOptions

    def apply(self, inventory: Inventory) -> Inventory:
        """A fresh endpoint; the devices stay until there is a list."""
        return plugin_registered(inventory, self.resource, self.options)


@dataclass(frozen=True, slots=True)
class Listed:
    """A plugin sent its devices (DEV-14..16)."""

    resource: str
    devices: tuple[Device, ...]
    stored: bool = True

    def apply(self, inventory: Inventory) -> Inventory:
        """Replace the list."""
        return list_received(inventory, self.resource, self.devices)

    def flipped(self, inventory: Inventory) -> frozenset[DeviceId]:
        """Devices in the list that were not there, or not with this health."""
        return health_changes(inventory, self.resource, self.devices)


@dataclass(frozen=True, slots=True)
class Disconnected(_Quiet):
    """The plugin of a resource is gone since `at` (DEV-11)."""

    resource: str
    at: float

    def apply(self, inventory: Inventory) -> Inventory:
        """No healthy device any more."""
        return plugin_disconnected(inventory, self.resource, self.at)


@dataclass(frozen=True, slots=True)
class WaitedOut(_Quiet):
    """Plugins that were there before the start are waited for no longer."""

    def apply(self, inventory: Inventory) -> Inventory:
        """No resource is awaited."""
        return waited_out(inventory)


@dataclass(frozen=True, slots=True)
class GracePassed(_Quiet):
    """Resources whose plugin has stayed away too long at `now` are given up (DEV-18)."""

    now: float
    stored: bool = True

    def apply(self, inventory: Inventory) -> Inventory:
        """Without what is given up."""
        return capacity(inventory, self.now).inventory

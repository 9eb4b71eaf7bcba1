"""What plugins have reported, with what follows from it for every decision. Pure.

Kept apart from the engine, because it is worked out once for each change of a device list,
not for each pod; and only for the resources that changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from numalign.device.inventory import Inventory
from numalign.device.layout import DeviceLayout, is_same_layout, layout_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """An inventory on a machine with `machine_nodes` (in its order); build it with `over`.

    `served` are the resources that plugins serve, ascending (DEV-44).
    """

    machine_nodes: tuple[int, ...]
    empty: DeviceLayout
    inventory: Inventory = field(default_factory=Inventory)
    layouts: Mapping[str, DeviceLayout] = field(default_factory=dict)
    served: tuple[str, ...] = ()

    def layout(self, resource: str) -> DeviceLayout:
        """Where the devices of `resource` sit; one without devices where nobody reported it."""
        return self.layouts.get(resource, self.empty)

    def over(self, inventory: Inventory) -> Catalogue:
        """The catalogue of `inventory`; what did not change since is not worked out again."""
        layouts: dict[str, DeviceLayout] = {}
        for name, resource in inventory.resources.items():
            layout = self.layouts.get(name)
            if layout is None or (
                resource.devices is not self.inventory.of(name).devices
                and not is_same_layout(layout, resource.devices)
            ):
                layout = layout_of(resource.devices, self.machine_nodes)
            layouts[name] = layout
        return Catalogue(
            machine_nodes=self.machine_nodes,
            empty=self.empty,
            inventory=inventory,
            layouts=layouts,
            served=inventory.served(),
        )


def catalogue(inventory: Inventory, machine_nodes: tuple[int, ...]) -> Catalogue:
    """The first catalogue on a machine."""
    empty = layout_of({}, machine_nodes)
    return Catalogue(machine_nodes=machine_nodes, empty=empty).over(inventory)

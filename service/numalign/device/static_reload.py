"""From one static inventory to the next: what its plugins would have done meanwhile.

A change of the configuration is played as the events that real plugins would send, so that
the rules on registration, lists and lost connections are the only ones there are.
"""

from __future__ import annotations

from collections.abc import Iterable

from numalign.device.inventory import Inventory, list_received, plugin_disconnected
from numalign.device.static_plugins import registered, static_devices
from numalign.model.settings import PluginPresence, StaticResource


def reloaded(
    inventory: Inventory,
    old: Iterable[StaticResource],
    new: Iterable[StaticResource],
    now: float,
) -> Inventory:
    """`inventory` after the configuration went from `old` to `new` at `now` (seconds).

    A plugin that is there and was not, or answers differently, registers anew (DEV-10) and
    sends its list; one that only lists other devices or another health sends its list
    (DEV-14); one that is gone loses its connection (DEV-11).
    """
    before = {resource.resource: resource for resource in old}
    after = {resource.resource: resource for resource in new}
    for name in sorted(before.keys() | after.keys()):
        was, is_now = before.get(name), after.get(name)
        if was == is_now:
            continue
        inventory = _changed(inventory, name, was, is_now, now)
    return inventory


def _changed(
    inventory: Inventory,
    name: str,
    was: StaticResource | None,
    is_now: StaticResource | None,
    now: float,
) -> Inventory:
    was_there = was is not None and was.plugin is PluginPresence.REGISTERED
    if is_now is None or is_now.plugin is not PluginPresence.REGISTERED:
        return plugin_disconnected(inventory, name, now) if was_there else inventory
    if was_there and was is not None and was.preferred_allocation == is_now.preferred_allocation:
        return list_received(inventory, name, static_devices(is_now.devices))
    return registered(inventory, is_now)

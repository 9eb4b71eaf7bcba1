"""What the device service should show of a plugin once it has heard its list. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from numalign.device.inventory import HEALTHY, Device
from numalign.device.plugin_host.listing import Listing
from numalign.device.static_plugins import UNHEALTHY
from numalign.model.ids import DeviceId
from numalign.replay.recordings import Json
from numalign.v1 import hint_provider_pb2 as hp


def expected_devices(
    entry: Json,
    listed: Callable[[Iterable[Device], Collection[int]], Listing],
    nodes: Collection[int],
) -> list[hp.Device]:
    """The devices of a scenario's entry by ascending id, as far as they count on `nodes`."""
    sent = [
        Device(
            id=DeviceId(device["id"]),
            numa_nodes=None if device["numa_nodes"] is None else tuple(device["numa_nodes"]),
            health=HEALTHY if device["healthy"] else UNHEALTHY,
        )
        for device in entry["devices"]
    ]
    return [
        hp.Device(
            id=device.id,
            healthy=device.health == HEALTHY,
            has_topology=device.numa_nodes is not None,
            numa_nodes=device.numa_nodes or (),
        )
        for device in sorted(listed(sent, nodes).devices, key=lambda device: device.id)
    ]

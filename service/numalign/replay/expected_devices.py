"""What the device service should show of a plugin once it has heard its list. Pure."""

from __future__ import annotations

from collections.abc import Collection

from numalign.device.inventory import HEALTHY
from numalign.device.listing import Listed
from numalign.replay.device_lists import counted
from numalign.replay.recordings import Json
from numalign.v1 import hint_provider_pb2 as hp


def expected_devices(entry: Json, listed: Listed, nodes: Collection[int]) -> list[hp.Device]:
    """The devices of a scenario's entry by ascending id, as far as they count on `nodes`."""
    return [
        hp.Device(
            id=device.id,
            healthy=device.health == HEALTHY,
            has_topology=device.numa_nodes is not None,
            numa_nodes=device.numa_nodes or (),
        )
        for device in sorted(counted(entry, listed, nodes), key=lambda device: device.id)
    ]

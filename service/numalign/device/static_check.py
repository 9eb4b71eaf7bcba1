"""Whether configured devices can be on this machine. Pure.

Separate from reading the configuration, which knows no machine, and from the inventory, which
is built from what has been checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from numalign.device.listing import Listed
from numalign.device.static_plugins import static_devices
from numalign.model.settings import StaticResource


def device_problems(
    configured: Iterable[StaticResource], listed: Listed, nodes: Collection[int]
) -> Iterator[str]:
    """A line for each device that does not count as it is configured, naming the field.

    `listed` says what counts on a machine with the NUMA nodes `nodes`.
    """
    for number, resource in enumerate(configured):
        for index, device in enumerate(static_devices(resource.devices)):
            for oddity in listed((device,), nodes).oddities:
                yield f"numalign.devices[{number}].devices[{index}].numa_nodes: {oddity.what}"

"""The static device inventory: resources, their devices, and how their plugins behave.

The schema is that of recordings, so that one inventory serves tests, replays and nodes.
"""

from __future__ import annotations

from numalign.document.section import Section, shown
from numalign.model.ids import DeviceId
from numalign.model.numa_mask import MAX_NUMA_ID
from numalign.model.resource_names import is_extended
from numalign.model.settings import (
    PluginPresence,
    PreferredAllocation,
    StaticDevice,
    StaticResource,
)

_RESOURCE_KEYS = ("resource", "devices", "preferred_allocation", "allocate_error", "plugin")
_DEVICE_KEYS = ("id", "numa_nodes", "healthy")


def read_inventory(section: Section, key: str) -> tuple[StaticResource, ...]:
    """The resources in the list at `key`; mistakes are recorded.

    Refused are unknown keys, names that no plugin could register (DEV-4), a resource named
    twice, a device id used twice in one resource, and NUMA ids outside 0..63.
    """
    resources = []
    seen: set[str] = set()
    for item in section.sections(key):
        resource = _resource(item)
        if resource.resource and not is_extended(resource.resource):
            item.wrong(
                "resource",
                f"{shown(resource.resource)} is no extended resource, such as vendor.example/gpu",
            )
        if resource.resource in seen:
            item.wrong("resource", f"{resource.resource} is given twice")
        seen.add(resource.resource)
        resources.append(resource)
    return tuple(resources)


def _resource(section: Section) -> StaticResource:
    section.refuse_unknown(_RESOURCE_KEYS)
    devices = []
    seen: set[str] = set()
    for item in section.sections("devices"):
        device = _device(item)
        if device.id in seen:
            item.wrong("id", f"{device.id} is given twice")
        seen.add(device.id)
        devices.append(device)
    return StaticResource(
        resource=section.required_text("resource"),
        devices=tuple(devices),
        preferred_allocation=section.choice("preferred_allocation", PreferredAllocation.NONE),
        allocate_error=section.text("allocate_error") if "allocate_error" in section else None,
        plugin=section.choice("plugin", PluginPresence.REGISTERED),
    )


def _device(section: Section) -> StaticDevice:
    section.refuse_unknown(_DEVICE_KEYS)
    nodes = section.integers("numa_nodes") if "numa_nodes" in section else None
    if nodes is not None and any(not 0 <= node <= MAX_NUMA_ID for node in nodes):
        section.wrong("numa_nodes", f"NUMA ids must lie between 0 and {MAX_NUMA_ID}")
    return StaticDevice(
        id=DeviceId(section.required_text("id")),
        numa_nodes=nodes,
        healthy=section.boolean("healthy", True),
    )

"""The device lists of a scenario: what plugins send, and what of it counts here. Pure."""

from __future__ import annotations

from collections.abc import Collection

from numalign.device.inventory import HEALTHY, UNHEALTHY, Device
from numalign.device.listing import Listed
from numalign.model.ids import DeviceId
from numalign.replay.recordings import Json


def counted(entry: Json, listed: Listed, nodes: Collection[int]) -> tuple[Device, ...]:
    """The devices of a scenario's entry, as far as they count on `nodes`."""
    sent = [
        Device(
            id=DeviceId(device["id"]),
            numa_nodes=None if device["numa_nodes"] is None else tuple(device["numa_nodes"]),
            health=HEALTHY if device["healthy"] else UNHEALTHY,
        )
        for device in entry["devices"]
    ]
    return listed(sent, nodes).devices


def counted_entry(entry: Json, listed: Listed, nodes: Collection[int]) -> Json:
    """The entry with the devices that count on `nodes`."""
    devices = [
        {
            "id": device.id,
            "numa_nodes": None if device.numa_nodes is None else list(device.numa_nodes),
            "healthy": device.health == HEALTHY,
        }
        for device in counted(entry, listed, nodes)
    ]
    return {**entry, "devices": devices}


def with_list(node: Json, step: Json) -> Json:
    """A node after a plugin sent the list of `step`."""
    return {
        **node,
        "devices": [
            {**entry, "devices": step["devices"]}
            if entry["resource"] == step["resource"]
            else entry
            for entry in node["devices"]
        ],
    }


def misplaced(node: Json) -> frozenset[str]:
    """Resources with devices on NUMA nodes, none of which the machine has."""
    there = {numa_node["id"] for numa_node in node["machine"]["numa_nodes"]}
    named = {
        entry["resource"]: {n for device in entry["devices"] for n in device["numa_nodes"] or ()}
        for entry in node["devices"]
    }
    return frozenset(resource for resource, nodes in named.items() if nodes and not nodes & there)

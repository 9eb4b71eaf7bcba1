"""What stands behind the hints of a device resource, for the explanation.

Separate from the hints: this names holders and reasons, which no decision reads.
"""

from __future__ import annotations

from numalign.device.inventory import ResourceInventory
from numalign.device.layout import DeviceLayout
from numalign.device.state import DeviceState
from numalign.model.ids import NumaId
from numalign.provider.values import Holder, NodeFacts, ResourceFacts


def resource_facts(
    *,
    resource: str,
    requested: int,
    known: ResourceInventory,
    layout: DeviceLayout,
    state: DeviceState,
) -> ResourceFacts:
    """Devices of one resource per NUMA node: there, free, and held by whom.

    A device on several nodes counts on each of them. Nodes are those that hints range over.
    `minimum_nodes` is None where hints have no preference.
    """
    free = (known.healthy or frozenset()) - state.allocated.get(resource, frozenset())
    capacity = dict.fromkeys(layout.nodes, 0)
    free_by_node = dict.fromkeys(layout.nodes, 0)
    for device, nodes in layout.topologies.items():
        for node in set(nodes or ()):
            if node in capacity:
                capacity[node] += 1
                free_by_node[node] += device in free
    holders = _holders(state, resource)
    return ResourceFacts(
        resource=resource,
        requested=requested,
        nodes=tuple(
            NodeFacts(
                node=NumaId(node),
                capacity=capacity[node],
                reserved=0,
                free=free_by_node[node],
                holders=tuple(holders.get(node, ())),
            )
            for node in layout.nodes
        ),
        minimum_nodes=layout.minimum_size(requested) if layout.has_topology else None,
        note=_note(known, layout),
    )


def _holders(state: DeviceState, resource: str) -> dict[int, list[Holder]]:
    """Who holds devices on each node, by ascending pod, then container."""
    holders: dict[int, list[Holder]] = {}
    for pod_uid, containers in sorted(state.records.items()):
        for container, resources in sorted(containers.items()):
            if resource not in resources:
                continue
            for node, held in resources[resource].ids_by_node.items():
                holders.setdefault(node, []).append(
                    Holder(pod_uid=pod_uid, container=container, amount=len(held))
                )
    return holders


def _note(known: ResourceInventory, layout: DeviceLayout) -> str:
    """Sentences on what the columns do not show."""
    sentences = []
    if known.healthy is None:
        sentences.append("No device plugin serves this resource.")
    elif known.endpoint is not None and known.endpoint.stopped_at is not None:
        sentences.append("The device plugin is not connected.")
    unhealthy = len(known.unhealthy or ())
    if unhealthy:
        sentences.append(f"{_devices(unhealthy)} unhealthy and cannot be taken.")
    nowhere = sum(not nodes for nodes in layout.topologies.values())
    if nowhere and layout.has_topology:
        sentences.append(f"{_devices(nowhere)} without a NUMA node and in no hint.")
    elif nowhere:
        sentences.append("No device reports a NUMA node, so there is no preference.")
    return " ".join(sentences)


def _devices(count: int) -> str:
    return f"{count} device is" if count == 1 else f"{count} devices are"

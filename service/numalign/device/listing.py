"""Judging a device list before it counts: ids named twice, NUMA nodes that cannot be.

Two strategies, chosen at start: as the kubelet takes a list, or safely. Pure; whoever asks
tells of the oddities.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from numalign.device.inventory import Device

DUPLICATE_ID = "duplicate-id"
UNKNOWN_NODE = "unknown-numa-node"

KINDS = (DUPLICATE_ID, UNKNOWN_NODE)
"""Kinds of oddities, as they are counted."""


@dataclass(frozen=True, slots=True, order=True)
class Oddity:
    """Something in a list that makes no sense: its kind, and a sentence on it."""

    kind: str
    what: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The devices that count, and what was odd about the list."""

    devices: tuple[Device, ...]
    oddities: tuple[Oddity, ...] = ()


Listed: TypeAlias = Callable[[Iterable[Device], Collection[int]], Listing]
"""What of a list counts on a machine with these NUMA nodes."""


def listed_as_sent(devices: Iterable[Device], nodes: Collection[int]) -> Listing:  # noqa: ARG001 - nothing is judged
    """Every device as it was sent, as the kubelet takes it (DEV-14, DEV-31, DEV-T11)."""
    return Listing(tuple(devices))


def listed_safely(devices: Iterable[Device], nodes: Collection[int]) -> Listing:
    """Each id once, on NUMA nodes of this machine (`nodes`).

    Of an id that is named twice the last mention counts, in its health as well. A node that
    the machine does not have says nothing, so it is left out; a device that names no other
    has no topology.
    """
    oddities: list[Oddity] = []
    kept: dict[str, Device] = {}
    for device in devices:
        if device.id in kept:
            oddities.append(Oddity(DUPLICATE_ID, f'device "{device.id}" is listed twice'))
        kept[device.id] = _on_known_nodes(device, nodes, oddities)
    return Listing(tuple(kept.values()), tuple(oddities))


def _on_known_nodes(device: Device, nodes: Collection[int], oddities: list[Oddity]) -> Device:
    named = device.numa_nodes
    if not named:
        return device
    known = tuple(node for node in named if node in nodes)
    if len(known) == len(named):
        return device
    unknown = ", ".join(str(node) for node in named if node not in nodes)
    oddities.append(
        Oddity(UNKNOWN_NODE, f'device "{device.id}" is on NUMA node {unknown}, which is not here')
    )
    return replace(device, numa_nodes=known or None)

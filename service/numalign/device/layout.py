"""Where the devices of one resource sit: the part of a hint that no allocation changes.

Built once per device list, so that a hint request only counts free devices. Separate from
the hints because choosing ids (DEV-31) needs the same facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TypeAlias

from numalign.device.inventory import WITHOUT_TOPOLOGY, Device
from numalign.families.counts import fewest_nodes
from numalign.model.hint import Piece, Threshold, TopologyHint
from numalign.model.ids import DeviceId
from numalign.model.numa_mask import MAX_NUMA_ID, NumaMask, mask_of, subsets

_KEPT_UP_TO = 10
"""Node counts whose candidates are kept for the next request: 1023 masks at most."""

Candidate: TypeAlias = tuple[NumaMask, int, TopologyHint, TopologyHint]
"""A mask, the bit of its lowest node, and its hint: first not preferred, then preferred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLayout:
    """NUMA nodes of every listed device of one resource, of any health.

    `node_bits` has bit i set for node i; ids outside 0..63 are in no mask and have no bit.
    `nodes` are the nodes that hints range over. `groups` counts the devices by the bits
    that lie in `nodes`, ascending, without those that have none. `nowhere` are the devices
    that have no node, or none but -1 (DEV-31).
    """

    topologies: Mapping[DeviceId, tuple[int, ...] | None]
    node_bits: Mapping[DeviceId, int]
    nodes: tuple[int, ...]
    groups: tuple[tuple[int, int], ...]
    nowhere: frozenset[DeviceId]
    has_topology: bool

    def candidates(self) -> Iterable[Candidate]:
        """All masks over `nodes`, by size, then lexicographic (DEV-24)."""
        if len(self.nodes) <= _KEPT_UP_TO:
            return _kept_candidates(self.nodes)
        return _candidates(self.nodes)

    def minimum_size(self, request: int) -> int:
        """Size of the smallest mask with `request` devices, free or not (DEV-24 step 1).

        The number of nodes considered where no mask has that many.
        """
        return _minimum_size(self.nodes, self.groups, request)


def layout_of(devices: Mapping[DeviceId, Device], machine_nodes: tuple[int, ...]) -> DeviceLayout:
    """The layout of a device list on a machine whose nodes are `machine_nodes` (in its order)."""
    topologies = {device.id: device.numa_nodes for device in devices.values()}
    node_bits = {id_: _bits(nodes or ()) for id_, nodes in topologies.items()}
    known = set(machine_nodes)
    bearing = sorted({n for nodes in topologies.values() for n in nodes or () if n in known})
    considered = tuple(bearing) if bearing else machine_nodes
    inside = _bits(considered)
    groups = Counter(bits & inside for bits in node_bits.values())
    return DeviceLayout(
        topologies=topologies,
        node_bits=node_bits,
        nodes=considered,
        groups=tuple(sorted((bits, count) for bits, count in groups.items() if bits)),
        nowhere=frozenset(
            id_
            for id_, nodes in topologies.items()
            if all(node == WITHOUT_TOPOLOGY for node in nodes or ())
        ),
        has_topology=any(topologies.values()),
    )


def is_same_layout(layout: DeviceLayout, devices: Mapping[DeviceId, Device]) -> bool:
    """Whether `layout` still describes `devices`: only health may have changed."""
    return len(layout.topologies) == len(devices) and all(
        id_ in layout.topologies and layout.topologies[id_] == device.numa_nodes
        for id_, device in devices.items()
    )


def _bits(nodes: Iterable[int]) -> int:
    bits = 0
    for node in nodes:
        if 0 <= node <= MAX_NUMA_ID:
            bits |= 1 << node
    return bits


def _candidates(nodes: tuple[int, ...]) -> Iterator[Candidate]:
    for mask in subsets(nodes):
        yield mask, mask & -mask, TopologyHint(mask, False), TopologyHint(mask, True)


@lru_cache(maxsize=16)
def _kept_candidates(nodes: tuple[int, ...]) -> tuple[Candidate, ...]:
    return tuple(_candidates(nodes))


@lru_cache(maxsize=1024)
def _minimum_size(nodes: tuple[int, ...], groups: tuple[tuple[int, int], ...], request: int) -> int:
    if request <= 0:
        return min(1, len(nodes))
    if all(bits.bit_count() == 1 for bits, _ in groups):
        # Nodes share no device, so the fullest nodes together are the best mask of a size.
        fullest = sorted((count for _, count in groups), reverse=True)
        for size, devices in enumerate(accumulate(fullest), start=1):
            if devices >= request:
                return size
        return len(nodes)
    ground = mask_of(node for node in nodes if node <= MAX_NUMA_ID)
    piece = Piece(
        ground,
        thresholds=(
            Threshold(
                need=request,
                weights=(0,) * ground.bit_count(),
                groups=tuple([(NumaMask(bits), count) for bits, count in groups]),
            ),
        ),
    )
    fewest = fewest_nodes(piece)
    return len(nodes) if fewest is None else fewest

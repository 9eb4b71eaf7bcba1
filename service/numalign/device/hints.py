"""Hints for devices: which NUMA nodes could serve a request (DEV-22..25).

Pure functions; the engine hands in what is free, held and reusable. Which devices there are
and where they sit is in the layout.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from numalign.device.errors import DeviceFault
from numalign.device.layout import DeviceLayout
from numalign.families.pieces import compiled
from numalign.model.hint import FamilyList, HintList, Piece, Threshold, TopologyHint
from numalign.model.ids import DeviceId
from numalign.model.numa_mask import EMPTY, NumaMask, mask_of

MOST_LISTED_NODES = 8
"""Above this many nodes with devices of a resource the masks are described, not listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HintQuestion:
    """One resource as one container, or a pod as a whole, asks for it.

    `held` are the ids that the asker has already; `available` the healthy ids that nobody
    holds; `reusable` is empty for a whole pod.
    """

    request: int
    held: frozenset[DeviceId]
    available: frozenset[DeviceId]
    reusable: frozenset[DeviceId] = frozenset()


Fault = Callable[[DeviceId], DeviceFault]
"""Builds the fault to raise for a device that is not listed any more."""


def hints(layout: DeviceLayout, question: HintQuestion, fault: Fault) -> HintList:
    """The hints for one resource (DEV-23): None is no preference, () cannot be placed.

    Raises `fault` for a held or reusable device that is not in the layout (DEV-25).
    """
    if not layout.has_topology:
        return None
    state = describe if len(layout.nodes) > MOST_LISTED_NODES else generate
    if question.held:
        if len(question.held) != question.request:
            return ()
        return state(layout, question.request, question.held, frozenset(), fault)
    if len(question.available | question.reusable) < question.request:
        return ()
    return state(layout, question.request, question.available, question.reusable, fault)


def generate(
    layout: DeviceLayout,
    request: int,
    available: Iterable[DeviceId],
    reusable: Iterable[DeviceId],
    fault: Fault,
) -> tuple[TopologyHint, ...]:
    """Every mask that holds all reusable and enough available devices (DEV-24).

    Preferred are the masks of the size that the request would need on an empty machine.
    """
    required, matching_always = _required_nodes(layout, reusable, fault)
    single, shared = _count_by_nodes(layout, available, fault)
    minimum = layout.minimum_size(request)
    # `single` devices add up node by node, so a mask has what the mask without its lowest
    # node has and what that node has; devices on several nodes are looked at per mask.
    reach = {0: matching_always}
    found = []
    for mask, lowest, plain, preferred in layout.candidates():
        matching = reach[mask] = reach[mask ^ lowest] + single.get(lowest, 0)
        for bits, count in shared:
            if bits & mask:
                matching += count
        if matching >= request:
            for bits in required:
                if not bits & mask:
                    break
            else:
                found.append(preferred if mask.bit_count() == minimum else plain)
    return tuple(found)


def describe(
    layout: DeviceLayout,
    request: int,
    available: Iterable[DeviceId],
    reusable: Iterable[DeviceId],
    fault: Fault,
) -> tuple[TopologyHint, ...] | FamilyList:
    """The masks of `generate` as one piece (F-2): on many nodes they are too many to list.

    Each reusable device must be touched: a node of its own is in every mask, and one on several
    nodes is a threshold of its own.
    """
    required, matching_always = _required_nodes(layout, reusable, fault)
    single, shared = _count_by_nodes(layout, available, fault)
    nodes = sorted(layout.nodes)
    ground = mask_of(nodes)
    must = EMPTY
    thresholds = [
        Threshold(
            need=request - matching_always,
            weights=tuple([single.get(1 << node, 0) for node in nodes]),
            groups=tuple([(NumaMask(bits), count) for bits, count in shared]),
        )
    ]
    for bits in required:
        inside = bits & ground
        if not inside:
            return ()
        if inside & (inside - 1):
            thresholds.append(Threshold(1, tuple([inside >> node & 1 for node in nodes])))
        else:
            must = NumaMask(must | inside)
    piece = Piece(ground, must, tuple(thresholds))
    if compiled(piece) is None:
        return ()
    return FamilyList(pieces=(piece,), preferred_count=layout.minimum_size(request))


def _required_nodes(
    layout: DeviceLayout, reusable: Iterable[DeviceId], fault: Fault
) -> tuple[frozenset[int], int]:
    """Node sets that a mask must touch, and how many devices they stand for.

    A device without topology does not count; one whose topology names no node that a mask
    can hold can never be touched, so no mask remains (DEV-24 step 2).
    """
    required = set()
    count = 0
    for device in reusable:
        if device not in layout.topologies:
            raise fault(device)
        if layout.topologies[device] is not None:
            required.add(layout.node_bits[device])
            count += 1
    return frozenset(required), count


def _count_by_nodes(
    layout: DeviceLayout, available: Iterable[DeviceId], fault: Fault
) -> tuple[dict[int, int], tuple[tuple[int, int], ...]]:
    """Devices on one node by the bit of that node, and those on several by their bits."""
    try:
        counts = Counter(map(layout.node_bits.__getitem__, available))
    except KeyError as missing:
        raise fault(missing.args[0]) from None
    single = {bits: count for bits, count in counts.items() if not bits & (bits - 1)}
    shared = tuple((bits, count) for bits, count in counts.items() if bits & (bits - 1))
    return single, shared

"""What the merge knows about the machine's NUMA nodes: their ids, and how far apart they are.

Separate from the merge because only ties between equally wide masks ever look at distances,
and because a machine whose distances cannot be used is refused here, with a reason.
Rules TM-8..TM-11, TM-14.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import TypeAlias

from numalign.errors import NumalignError, StartError
from numalign.families.distances import Distances
from numalign.model.machine import Machine
from numalign.model.numa_mask import NumaMask, mask_of, nodes_of

STAGE = "topology_manager"
"""The stage that a refused construction names."""


class MissingDistance(NumalignError):
    """A comparison needs a distance that the machine does not report (TM-10).

    Distances are looked up by node id, so a machine with gaps in its ids and rows as long as
    its number of nodes has none for its last nodes.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaInfo:
    """Node ids in the order reported, and the mask of all of them (D of the specification).

    `distances` holds one row per node, indexed by node id; empty where distances do not count.
    """

    nodes: tuple[int, ...]
    default_mask: NumaMask
    distances: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def average_distance(self, mask: NumaMask) -> float:
        """Mean distance over all ordered pairs of nodes in `mask`, a node to itself included.

        0 for the empty mask. Raises MissingDistance (TM-10).
        """
        nodes = nodes_of(mask)
        if not nodes:
            return 0.0
        try:
            rows = [self.distances[node] for node in nodes]
            if len(nodes) == 1:
                return float(rows[0][nodes[0]])
            total = sum(map(sum, map(itemgetter(*nodes), rows)))
        except LookupError:
            raise self.missing(nodes) from None
        # A sum of integers is exact; one division rounds as the double arithmetic does.
        return total / len(nodes) ** 2

    @property
    def closest(self) -> Closest:
        """The order in which distances decide between equally wide masks (TM-11)."""
        return Closest(self)

    def missing(self, nodes: tuple[int, ...]) -> MissingDistance:
        """What to raise where a distance between some of `nodes` is not reported."""
        for node in nodes:
            row = self.distances.get(node, ())
            for other in nodes:
                if other >= len(row):
                    return MissingDistance(
                        f"the distance from NUMA node {node} to NUMA node {other} is not known, "
                        f"the machine reports {len(row)} distances for NUMA node {node}"
                    )
        raise AssertionError("every distance between the nodes is known")


@dataclass(frozen=True)
class Closest:
    """Picks the narrowest mask; between equally wide ones that of the least average distance.

    Equal averages are decided by the smaller value. No distance is needed where the width
    alone decides. Raises MissingDistance where it does not (TM-10, TM-11).
    """

    numa: NumaInfo

    @cached_property
    def distances(self) -> Distances:
        """The distances as a search for close nodes needs them, prepared at the first."""
        return Distances(self.numa.nodes, self.numa.distances, self.numa.missing)

    def __call__(self, masks: Collection[NumaMask]) -> NumaMask:
        """The best of one or more distinct, non-empty masks."""
        narrow = _narrow(masks)
        if len(narrow) == 1:
            return narrow[0]
        return min(narrow, key=lambda mask: (self.numa.average_distance(mask), mask))


@dataclass(frozen=True, slots=True)
class Narrowest:
    """Picks the mask with the fewest nodes; among several the smallest value (TM-2, TM-11)."""

    distances: None = None

    def __call__(self, masks: Collection[NumaMask]) -> NumaMask:
        """The best of one or more distinct, non-empty masks."""
        return min(_narrow(masks))


Fitter: TypeAlias = Closest | Narrowest
"""How equally good masks compare (TM-11)."""

narrowest = Narrowest()


def reported_distances(machine: Machine) -> dict[int, tuple[int, ...]]:
    """The distance row of every node, by node id.

    Raises StartError where a node reports none; an empty row passes (TM-9, TM-14).
    """
    distances: dict[int, tuple[int, ...]] = {}
    for node in machine.numa_nodes:
        if node.distances is None:
            raise StartError(
                STAGE, "cannot discover NUMA topology: error getting NUMA distances from cadvisor"
            )
        distances[node.id] = node.distances
    return distances


def numa_info(machine: Machine, distances: Mapping[int, tuple[int, ...]]) -> NumaInfo:
    """The NUMA nodes of `machine`, none left out, with `distances` as given (TM-8).

    Raises StartError for a node id that no mask can hold (TM-1).
    """
    nodes = machine.node_ids()
    try:
        default_mask = mask_of(nodes)
    except ValueError as error:
        raise StartError(STAGE, f"cannot discover NUMA topology: {error}") from error
    return NumaInfo(nodes=nodes, default_mask=default_mask, distances=distances)


def _narrow(masks: Collection[NumaMask]) -> list[NumaMask]:
    fewest = min(map(int.bit_count, masks))
    return [mask for mask in masks if mask.bit_count() == fewest]

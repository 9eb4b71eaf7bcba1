"""Which of equally wide sets of NUMA nodes is taken by how full they are; beyond the kubelet.

Separate from the merge, which is told an order and knows nothing of amounts. The order is that of
distances, with other numbers in their place: with d(i, j) = a(i) + a(j) the sum over all ordered
pairs of k nodes is 2k times the sum of their amounts a, so that sets of one size compare as these
sums do. So the merge's own searches, with their limits, find the set. Where distances count as
well, they come first: each is multiplied by more than all amounts together can add up to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from numalign.errors import StartError
from numalign.families.distances import LARGEST_DISTANCE
from numalign.model.settings import NumaAllocationStrategy
from numalign.provider.values import ResourceFacts
from numalign.topology.merge import FEW_NODES
from numalign.topology.numa_info import STAGE, Closest, NumaInfo

FINE = 1000
"""Of a node's free share, a thousandth counts, where all sets of nodes can be looked at."""

COARSE = 16
"""With more nodes a sixteenth counts: nodes that are equally full make a search short."""


@dataclass(frozen=True, slots=True)
class AllocationOrder:
    """Orders sets of NUMA nodes for one strategy, which is not `none`, on one machine.

    `numa` has distances where they count before the amounts. `steps` is how many steps the free
    share of a node has.
    """

    strategy: NumaAllocationStrategy
    numa: NumaInfo
    steps: int

    def __call__(self, facts: Sequence[ResourceFacts]) -> Closest:
        """The order for a request with these amounts behind it.

        A node counts with the mean, over the resources asked for that it has, of which share of
        what it can give out is free.
        """
        shares = {node: _share(node, facts, self.steps) for node in self.numa.nodes}
        if self.strategy is NumaAllocationStrategy.LEAST_ALLOCATED:
            shares = {node: self.steps - share for node, share in shares.items()}
        return Closest(
            NumaInfo(
                nodes=self.numa.nodes,
                default_mask=self.numa.default_mask,
                distances={node: self._row(node, shares) for node in self.numa.nodes},
            )
        )

    def _row(self, node: int, shares: dict[int, int]) -> tuple[int, ...]:
        """As long as the machine's, so that a distance that is not known stays unknown."""
        if not self.numa.distances:
            return tuple(
                shares[node] + shares.get(other, 0) for other in range(max(self.numa.nodes) + 1)
            )
        factor = _sum_limit(len(self.numa.nodes), self.steps)
        return tuple(
            distance * factor + shares[node] + shares.get(other, 0)
            for other, distance in enumerate(self.numa.distances.get(node, ()))
        )


def allocation_order(
    strategy: NumaAllocationStrategy, numa: NumaInfo, *, prefer_closest: bool
) -> AllocationOrder | None:
    """The order of a strategy; None for `none`, which is the kubelet's.

    Raises StartError where distances count as well and are too large to be put before amounts.
    """
    if strategy is NumaAllocationStrategy.NONE:
        return None
    steps = FINE if len(numa.nodes) <= FEW_NODES else COARSE
    if not prefer_closest:
        bare = NumaInfo(nodes=numa.nodes, default_mask=numa.default_mask)
        return AllocationOrder(strategy, bare, steps)
    largest = max((distance for row in numa.distances.values() for distance in row), default=0)
    if _largest_made(largest, len(numa.nodes), steps) > LARGEST_DISTANCE:
        raise StartError(
            STAGE,
            f"numaAllocationStrategy {strategy.value} cannot be used with "
            f"prefer-closest-numa-nodes: a distance of {largest} is too large",
            setting="numalign.placement.numaAllocationStrategy",
        )
    return AllocationOrder(strategy, numa, steps)


def _sum_limit(nodes: int, steps: int) -> int:
    """More than the amounts of all ordered pairs of `nodes` nodes add up to."""
    return 2 * nodes * nodes * steps + 1


def _largest_made(largest: int, nodes: int, steps: int) -> int:
    """What stands in the place of a distance at most, where distances are up to `largest`."""
    return largest * _sum_limit(nodes, steps) + 2 * steps


def _share(node: int, facts: Iterable[ResourceFacts], steps: int) -> int:
    """The mean free share of a node, 0 to `steps`; 0 for a node that has nothing to give."""
    shares = []
    for resource in facts:
        for at in resource.nodes:
            room = at.capacity - at.reserved
            if at.node == node and room > 0 and resource.requested:
                shares.append(min(at.free, room) * steps // room)
    return sum(shares) // len(shares) if shares else 0

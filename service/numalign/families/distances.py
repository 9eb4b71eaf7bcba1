"""The distances of a machine in the form that the search for close nodes needs.

Made once for a machine. Sums of integers stand for averages: masks of equal size compare the
same by either, as long as no sum is too large for a double to hold apart (Lemma 15).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from numalign.errors import Undecided
from numalign.families.packing import each_node

LARGEST_DISTANCE = 1 << 29
"""Distances up to this keep different sums apart on 64 nodes."""


class Distances:
    """`own[x]` is the distance of a node to itself, `both[x][y]` that there and back.

    `twins` part the nodes: no distance tells two of the same part from each other. Nodes whose
    distances are not all known are in `unknown`, and in no part.
    """

    def __init__(
        self,
        nodes: Sequence[int],
        rows: Mapping[int, Sequence[int]],
        complaint: Callable[[tuple[int, ...]], Exception],
    ) -> None:
        self._complaint = complaint
        self.unknown = 0
        for node in nodes:
            row = rows.get(node, ())
            if any(other >= len(row) for other in nodes):
                self.unknown |= 1 << node
        known = sorted(node for node in nodes if not self.unknown >> node & 1)
        self.own = {node: rows[node][node] for node in known}
        self.both = {
            node: {other: rows[node][other] + rows[other][node] for other in known}
            for node in known
        }
        self._too_large = any(
            not 0 <= rows[node][other] <= LARGEST_DISTANCE for node in known for other in known
        )
        self.twins = self._parts(known)

    def require(self, mask: int) -> None:
        """Raise what is to be raised where distances between nodes of `mask` cannot be used."""
        if mask & self.unknown:
            raise self._complaint(tuple(each_node(mask)))
        if self._too_large:
            raise Undecided("the machine's NUMA distances are too large to compare sums of them")

    def sum_of(self, mask: int) -> int:
        """The distances between all ordered pairs of nodes in `mask`."""
        nodes = list(each_node(mask))
        total = sum([self.own[node] for node in nodes])
        for i, node in enumerate(nodes):
            row = self.both[node]
            total += sum([row[other] for other in nodes[:i]])
        return total

    def _parts(self, known: Sequence[int]) -> tuple[int, ...]:
        parts: list[int] = []
        firsts: list[int] = []
        for node in known:
            for i, first in enumerate(firsts):
                if self._are_twins(node, first, known):
                    parts[i] |= 1 << node
                    break
            else:
                firsts.append(node)
                parts.append(1 << node)
        return tuple(parts)

    def _are_twins(self, node: int, other: int, known: Sequence[int]) -> bool:
        mine, theirs = self.both[node], self.both[other]
        return self.own[node] == self.own[other] and all(
            mine[third] == theirs[third] for third in known if third not in {node, other}
        )

"""Choosing how many nodes of each class of twins: costs, order, and what is left at each depth.

Lemma 16: the distances within a set of nodes depend only on how many of each class it has. The
same shape serves for choosing what to keep and what to take away: a class has a cost of its own
for each node, and pairs cost, within the class and between two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from numalign.families.distances import Distances
from numalign.families.packing import each_node

Join: TypeAlias = tuple[int, int, int]
"""Two parts of classes become the first of them; the step is what pairs across them cost."""

_Cost = TypeVar("_Cost", int, float)


@dataclass(frozen=True, slots=True)
class Side:
    """What there is to choose from, in the order of the search.

    `pick` nodes in all; `keeps`: those picked remain, else they are taken away. The sum of
    distances of the set that remains is `base` and the costs of what is picked.
    """

    keeps: bool
    pick: int
    base: int
    classes: tuple[int, ...]
    sizes: tuple[int, ...]
    own: tuple[int, ...]
    within: tuple[int, ...]
    between: tuple[tuple[int, ...], ...]


def smaller_side(target: int, remain: int, distances: Distances) -> Side:
    """The choice of `remain` nodes of `target`, from the side that has fewer to choose."""
    size = target.bit_count()
    keeps = 2 * remain <= size
    classes = _in_order(
        [twins & target for twins in distances.twins if twins & target], distances, low_first=keeps
    )
    firsts = [next(each_node(members)) for members in classes]
    both = distances.both
    own = [distances.own[first] for first in firsts]
    base = 0
    if not keeps:
        base = distances.sum_of(target)
        for i, first in enumerate(firsts):
            row = both[first]
            apart = sum([row[other] for other in each_node(target) if other != first])
            own[i] = -(own[i] + apart)
    return Side(
        keeps=keeps,
        pick=remain if keeps else size - remain,
        base=base,
        classes=tuple(classes),
        sizes=tuple([members.bit_count() for members in classes]),
        own=tuple(own),
        within=tuple([_within(members, distances) for members in classes]),
        between=tuple([tuple([both[a][b] for b in firsts]) for a in firsts]),
    )


def _within(members: int, distances: Distances) -> int:
    """What two nodes of one class are apart; nothing where it has but one."""
    nodes = list(each_node(members))
    return distances.both[nodes[0]][nodes[1]] if len(nodes) > 1 else 0


def _in_order(parts: Sequence[int], distances: Distances, *, low_first: bool) -> list[int]:
    """Each class followed by the nearest of those left, from the lowest id or the highest."""
    left = sorted(parts, key=lambda part: part & -part)
    if not low_first:
        left.reverse()
    ordered = [left.pop(0)]
    while left:
        row = distances.both[next(each_node(ordered[-1]))]
        nearest = min(range(len(left)), key=lambda i: row[next(each_node(left[i]))])
        ordered.append(left.pop(nearest))
    return ordered


class Rest:
    """Bounds on what `count` nodes of the classes from some depth on cost among themselves.

    Both bounds are worked out when first asked for.
    """

    def __init__(self, side: Side) -> None:
        self._side = side
        self._halves: dict[tuple[int, int, int], int] = {}
        self._trees: dict[int, list[int]] = {}

    def by_pairs(self, depth: int, count: int, near: Sequence[int]) -> int:
        """Each node pays half of what its `count` - 1 nearest pairs cost, in full itself.

        `near` is what each class costs per node beside what is picked already.
        """
        side = self._side
        offers = [
            (
                2 * (side.own[a] + near[a]) + self._half(depth, a, count - 1),
                side.sizes[a],
            )
            for a in range(depth, len(side.sizes))
        ]
        offers.sort()
        total, missing = 0, count
        for cost, size in offers:
            taken = min(size, missing)
            total += cost * taken
            missing -= taken
            if not missing:
                break
        return -(-total // 2)

    def by_tree(self, depth: int, count: int, near: Sequence[int]) -> int:
        """The tree of the nearest classes: pairs cost what the widest step between them costs."""
        side = self._side
        beside = sorted([(near[a], side.sizes[a]) for a in range(depth, len(side.sizes))])
        total, missing = 0, count
        for cost, size in beside:
            taken = min(size, missing)
            total += cost * taken
            missing -= taken
            if not missing:
                break
        if depth not in self._trees:
            self._trees[depth] = _tree_costs(side, depth)
        return total + self._trees[depth][count]

    def _half(self, depth: int, own: int, count: int) -> int:
        key = (depth, own, count)
        known = self._halves.get(key)
        if known is None:
            known = self._halves[key] = self._nearest(depth, own, count)
        return known

    def _nearest(self, depth: int, own: int, count: int) -> int:
        side = self._side
        pairs = [(side.within[own], side.sizes[own] - 1)]
        pairs += [
            (side.between[own][other], side.sizes[other])
            for other in range(depth, len(side.sizes))
            if other != own
        ]
        pairs.sort()
        total, missing = 0, count
        for cost, size in pairs:
            taken = min(size, missing)
            total += cost * taken
            missing -= taken
            if missing <= 0:
                break
        return total


def nearest_tree(side: Side, depth: int) -> list[Join]:
    """How the classes from `depth` on come together, nearest first; each is named by its first."""
    numbers = range(depth, len(side.sizes))
    group = {a: a for a in numbers}
    joins: list[Join] = []
    for step, a, b in sorted((side.between[a][b], a, b) for a in numbers for b in numbers if a < b):
        first, second = group[a], group[b]
        if first == second:
            continue
        joins.append((step, first, second))
        for member, of in group.items():
            if of == second:
                group[member] = first
    return joins


def joined(left: Sequence[_Cost], right: Sequence[_Cost], step: int, most: int) -> list[_Cost]:
    """The least cost of 0, 1, 2 ... nodes of two parts, pairs across which cost `step`."""
    both: list[_Cost] = []
    for count in range(min(len(left) + len(right) - 2, most) + 1):
        low, high = max(0, count - len(right) + 1), min(count, len(left) - 1)
        both.append(
            min([left[i] + right[count - i] + step * i * (count - i) for i in range(low, high + 1)])
        )
    return both


def _tree_costs(side: Side, depth: int) -> list[int]:
    """The least cost of 0, 1, 2 ... nodes from `depth` on, pairs as far apart as in the tree."""
    costs = {
        a: [k * side.own[a] + k * (k - 1) // 2 * side.within[a] for k in range(side.sizes[a] + 1)]
        for a in range(depth, len(side.sizes))
    }
    last = depth
    for step, first, second in nearest_tree(side, depth):
        costs[first] = joined(costs[first], costs.pop(second), step, side.pick)
        last = first
    return costs[last]

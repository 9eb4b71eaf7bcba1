"""The algorithm of `distribute-cpus-across-numa`: an even share of CPUs from several nodes.

Of all combinations of as few NUMA nodes as can hold the request, the one is used that
leaves the free CPUs of the machine most evenly spread. Rules CPU-63..CPU-65b.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from numalign.cpu.accumulator import Accumulator, AssignmentError
from numalign.cpu.balance import deviation
from numalign.cpu.order import Layout
from numalign.cpu.remembered import Combination, Remembered
from numalign.cpu.take_packed import check_enough, take_packed


def take_distributed(
    layout: Layout, offered: int, count: int, *, group: int, spread: bool = False
) -> int:
    """Choose `count` CPUs out of `offered` (bits), handed out in groups of `group` CPUs.

    Falls back to the packed algorithm where groups do not add up to the request or no
    combination of nodes does. Raises AssignmentError (CPU-45).
    """
    if count % group:
        return take_packed(layout, offered, count, spread=spread)
    run = Accumulator(layout, offered, count)
    if run.is_satisfied():
        return 0
    check_enough(offered, count)
    nodes = [node.bits for node in run.nodes()]
    search = _Search([(bits & offered).bit_count() for bits in nodes], count, group)
    per_node = _ceil_div(_ceil_div(layout.num_cpus, group), layout.num_nodes)
    needed = _ceil_div(count, group)
    for size in range(_ceil_div(needed, per_node), min(needed, len(nodes)) + 1):
        found = search.best(size)
        if found is not None:
            share = count // size // group * group
            combo, subset = found
            _hand_out(run, [nodes[i] for i in combo], share, spread=spread)
            _hand_out_rest(
                run, [nodes[i] for i in subset], count - share * size, group, spread=spread
            )
            return _checked(run)
    return take_packed(layout, offered, count, spread=spread)


class _Search:
    """The search for the best combination; nodes are positions in their order.

    After any complete choice the free CPUs of all nodes have the same sum, so the balance
    depends on the sum of their squares alone: it is computed once for each such sum.
    """

    def __init__(self, free: Sequence[int], count: int, group: int) -> None:
        self._free = free
        self._count = count
        self._group = group
        self._balances: dict[int, float] = {}

    def best(self, size: int) -> tuple[Combination, Combination] | None:
        """The combination of `size` nodes to use, and the nodes that get the remainder.

        None if no combination fits (CPU-63 rules 4 and 5).
        """
        share = self._count // size // self._group * self._group
        remainder = self._count - share * size
        best_balance = float("inf")
        best_subset: Remembered | None = None
        kept = Remembered(size)
        for combo in combinations(range(len(self._free)), size):
            kept.generated(combo)
            if best_balance == 0:
                break
            if not self._fits(combo, share):
                continue
            after = list(self._free)
            for i in combo:
                after[i] -= share
            if remainder:
                balance, subset = self._best_subset(combo, after, remainder // self._group)
            else:
                balance, subset = self._balance(after), None
            if balance < best_balance:
                best_balance, best_subset = balance, subset
                kept.keep(combo)
        if kept.value is None:
            return None
        return kept.value, (best_subset.value if best_subset else None) or ()

    def _fits(self, combo: Combination, share: int) -> bool:
        """Whether the nodes hold the request in whole groups and each its share."""
        group = self._group
        groups = 0
        for i in combo:
            if self._free[i] < share:
                return False
            groups += self._free[i] // group
        return groups * group >= self._count

    def _best_subset(
        self, combo: Combination, after: list[int], groups: int
    ) -> tuple[float, Remembered | None]:
        """The nodes of `combo` to take the `groups` left over from, and the balance then."""
        group = self._group
        takers = [i for i in combo if after[i] >= group]
        best_balance = float("inf")
        best: Remembered | None = None
        for size in range(len(takers), 0, -1):
            kept = Remembered(size)
            for subset in combinations(takers, size):
                kept.generated(subset)
                # A subset whose whole groups do not cover the remainder cannot be used, even
                # if its CPUs would (CPU-65b).
                if sum(after[i] // group for i in subset) < groups:
                    continue
                balance = self._balance(_cycled(after, subset, groups, group))
                if balance < best_balance:
                    best_balance, best = balance, kept
                    kept.keep(subset)
        return best_balance, best

    def _balance(self, after: list[int]) -> float:
        squares = sum([free * free for free in after])
        balance = self._balances.get(squares)
        if balance is None:
            balance = self._balances[squares] = deviation(after)
        return balance


def _cycled(after: list[int], subset: Combination, groups: int, group: int) -> list[int]:
    """What is free after `groups` groups were taken in turn from the nodes of `subset`.

    The nodes must hold that many whole groups.
    """
    left = after.copy()
    while groups:
        for i in subset:
            if left[i] >= group:
                left[i] -= group
                groups -= 1
                if not groups:
                    break
    return left


def _hand_out(run: Accumulator, nodes: Sequence[int], share: int, *, spread: bool) -> None:
    """Take `share` CPUs from each node."""
    for node in nodes:
        run.take(_packed_or_nothing(run, node, share, spread=spread))


def _hand_out_rest(
    run: Accumulator, nodes: Sequence[int], rest: int, group: int, *, spread: bool
) -> None:
    """Take `rest` CPUs in groups from the nodes in turn.

    Stops when a whole round gave nothing: the accounting check then tells.
    """
    while rest > 0:
        before = rest
        for node in nodes:
            if rest == 0:
                break
            if (node & run.free).bit_count() >= group:
                run.take(_packed_or_nothing(run, node, group, spread=spread))
                rest -= group
        if rest == before:
            return


def _packed_or_nothing(run: Accumulator, node: int, count: int, *, spread: bool) -> int:
    """CPUs of one node; a failure counts as taking nothing (CPU-64)."""
    try:
        return take_packed(run.layout, node & run.free, count, spread=spread)
    except AssignmentError:
        return 0


def _checked(run: Accumulator) -> int:
    if run.need > 0:
        raise AssignmentError(f"accounting error, not enough CPUs allocated, remaining: {run.need}")
    if run.need < 0:
        raise AssignmentError(f"accounting error, too many CPUs allocated, remaining: {run.need}")
    return run.result


def _ceil_div(a: int, b: int) -> int:
    return (a - 1) // b + 1

"""Exact search with one bin: which of the optional nodes to keep so that no row loses too much.

Seen from what is kept, every row has to be covered: kept nodes bring their weights, and a group
its value with the first of its nodes. Depth first; the node that brings most is kept, or left
out together with all that bring no more (so that no two solutions of the same worth are tried).
Cut off where the best that could still be kept does not cover some row, or some mixture of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from numalign.families.packing import Packing, each_node
from numalign.families.questions import Choice, Loads
from numalign.families.work import Work

_MIXTURES = 4
"""How many mixtures of rows are tried on each node of the search."""

_MARGIN = 1e-6

_Gains: TypeAlias = dict[int, tuple[int, ...]]
"""What keeping a node brings to each row."""


@dataclass(slots=True)
class _Branch:
    """What is still to be chosen: `wanted` nodes of each mask of `among`, to cover `needs`."""

    among: list[int]
    wanted: list[int]
    needs: list[int]
    kept: int


class KeepSearch:
    """The search over one packing with a single bin."""

    def __init__(self, packing: Packing, work: Work) -> None:
        self._packing = packing
        self._rows = packing.bins[0].rows
        self._work = work
        self._groups: list[list[tuple[int, int]]] = []
        self._weights = {node: options[0][1] for node, options in packing.options.items()}

    def run(self, choice: Choice) -> Loads | None:
        """Bins filled as `choice` asks, None if there is no way. Raises OutOfWork."""
        everything = choice.forced
        for mask, _ in choice.optional:
            everything |= mask
        self._groups = [
            [entry for entry in row.groups if not entry[0] & ~everything] for row in self._rows
        ]
        needs = [
            sum(row.weights[node] for node in each_node(everything))
            + sum(value for _, value in groups)
            - row.slack
            for row, groups in zip(self._rows, self._groups, strict=True)
        ]
        branch = _Branch(
            among=[mask for mask, _ in choice.optional],
            wanted=[mask.bit_count() - taken for mask, taken in choice.optional],
            needs=needs,
            kept=0,
        )
        kept = self._solve(branch)
        return None if kept is None else self._filled(everything & ~kept)

    def _solve(self, branch: _Branch) -> int | None:
        self._work.step()
        if max(branch.needs, default=0) <= 0:
            return branch.kept | _any_of(branch)
        gains = self._gains(branch)
        for row, need in enumerate(branch.needs):
            if need > 0 and self._most(branch, row, gains) < need:
                return None
        order = self._mixed(branch, gains)
        if isinstance(order, int):
            return order
        if not order:
            return None
        return self._either_way(branch, order[0], gains)

    def _either_way(self, branch: _Branch, node: int, gains: _Gains) -> int | None:
        bit = 1 << node
        number = next(i for i, mask in enumerate(branch.among) if mask & bit)
        with_it = _Branch(
            among=[mask & ~bit for mask in branch.among],
            wanted=[count - (i == number) for i, count in enumerate(branch.wanted)],
            needs=[need - gain for need, gain in zip(branch.needs, gains[node], strict=True)],
            kept=branch.kept | bit,
        )
        found = self._solve(with_it)
        if found is not None:
            return found
        left_out = self._no_better(node, branch.among[number], branch.kept)
        remaining = list(branch.among)
        remaining[number] &= ~left_out
        if remaining[number].bit_count() < branch.wanted[number]:
            return None
        return self._solve(_Branch(remaining, branch.wanted, branch.needs, branch.kept))

    def _gains(self, branch: _Branch) -> _Gains:
        nodes = [
            node
            for mask, wanted in zip(branch.among, branch.wanted, strict=True)
            if wanted
            for node in each_node(mask)
        ]
        if not self._packing.has_groups:
            return {node: self._weights[node] for node in nodes}
        untouched = [
            [entry for entry in groups if not entry[0] & branch.kept] for groups in self._groups
        ]
        return {
            node: tuple(
                [
                    weight + sum([value for group, value in groups if group >> node & 1])
                    for weight, groups in zip(self._weights[node], untouched, strict=True)
                ]
            )
            for node in nodes
        }

    def _most(self, branch: _Branch, row: int, gains: _Gains) -> int:
        """More than the nodes still wanted can bring to `row` is not possible (Lemma 13).

        A group whose nodes are all among one mask, and in no other group, brings its value with
        the best of its nodes only; any other is counted with each.
        """
        once: dict[int, int] = {}
        untouched = [entry for entry in self._groups[row] if not entry[0] & branch.kept]
        for group, value in untouched:
            inside = next((mask for mask in branch.among if not group & ~mask), 0)
            alone = all(not group & other for other, _ in untouched if other != group)
            if inside and alone:
                best = max(each_node(group), key=lambda n: self._weights[n][row])
                for node in each_node(group & ~(1 << best)):
                    once[node] = value
        total = 0
        for mask, wanted in zip(branch.among, branch.wanted, strict=True):
            if wanted:
                brings = [gains[n][row] - once.get(n, 0) for n in each_node(mask)]
                brings.sort(reverse=True)
                total += sum(brings[:wanted])
        return total

    def _mixed(self, branch: _Branch, gains: _Gains) -> list[int] | int:
        """The nodes by what they bring to a mixture of the rows.

        Empty if no choice can cover the mixture; a solution where the best nodes are one.
        """
        open_rows = [row for row, need in enumerate(branch.needs) if need > 0]
        mixture = dict.fromkeys(open_rows, 1.0)
        for _ in range(_MIXTURES):
            share = {row: mixture[row] / branch.needs[row] for row in open_rows}
            worth = {
                node: sum([share[row] * gain[row] for row in open_rows])
                for node, gain in gains.items()
            }
            chosen: list[int] = []
            for mask, wanted in zip(branch.among, branch.wanted, strict=True):
                if wanted:
                    chosen += sorted(each_node(mask), key=worth.__getitem__, reverse=True)[:wanted]
            if sum([worth[node] for node in chosen]) < sum(mixture.values()) * (1 - _MARGIN):
                return []
            brought = self._brought(chosen, branch.kept)
            covered = [got >= need for got, need in zip(brought, branch.needs, strict=True)]
            if all(covered):
                # Classes from which nothing is wanted have nothing to add.
                solution = branch.kept
                for node in chosen:
                    solution |= 1 << node
                return solution
            for row in open_rows:
                mixture[row] *= 0.6 if covered[row] else 1.6
        return sorted(gains, key=worth.__getitem__, reverse=True)

    def _brought(self, chosen: list[int], kept: int) -> list[int]:
        mask = 0
        for node in chosen:
            mask |= 1 << node
        brought = []
        for row, groups in enumerate(self._groups):
            total = sum([self._weights[node][row] for node in chosen])
            total += sum([value for group, value in groups if group & mask and not group & kept])
            brought.append(total)
        return brought

    def _no_better(self, node: int, among: int, kept: int) -> int:
        """`node` and the nodes that could be replaced by it in any solution (Lemma 11).

        Groups that both are in count for neither, since another node may touch them as well.
        """
        own = self._weights[node]
        left_out = 1 << node
        for other in each_node(among & ~left_out):
            if all(mine >= theirs for mine, theirs in zip(own, self._weights[other], strict=True)):
                if self._packing.has_groups and self._in_other_group(other, node, kept):
                    continue
                left_out |= 1 << other
        return left_out

    def _in_other_group(self, node: int, than: int, kept: int) -> bool:
        return any(
            group >> node & 1 and not group >> than & 1 and not group & kept
            for groups in self._groups
            for group, _ in groups
        )

    def _filled(self, dropped: int) -> Loads:
        loads = Loads(self._packing)
        for node in each_node(dropped):
            if loads.take(0, node, self._weights[node]) is None:
                raise AssertionError("a covered row has lost too much")
        return loads


def _any_of(branch: _Branch) -> int:
    """As many nodes as are still wanted, whichever."""
    chosen = 0
    for mask, wanted in zip(branch.among, branch.wanted, strict=True):
        bits = mask
        for _ in range(wanted):
            low = bits & -bits
            chosen |= low
            bits ^= low
    return chosen

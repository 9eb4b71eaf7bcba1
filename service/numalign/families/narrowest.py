"""The solution whose remaining set of nodes is the least integer: bits from the top.

Lemma 10: nodes are decided from the highest id down; one is taken away if the problem with all
decisions so far still has a solution, else it is kept. A kept high node outweighs all lower ones.
Most questions answer themselves: by the last solution (the witness), by an exchange in it, or by
Lemma 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numalign.families.oracle import Oracle
from numalign.families.packing import each_node, nodes_descending
from numalign.families.questions import Solution, fits
from numalign.families.work import OutOfWork


@dataclass(frozen=True, slots=True)
class Least:
    """The set of nodes found. Not `proved`: a smaller integer was not excluded."""

    mask: int
    proved: bool = True


def least(
    oracle: Oracle,
    classes: Sequence[int],
    quotas: Sequence[int],
    *,
    below: int | None = None,
    witness: Solution | None = None,
) -> Least | None:
    """The least set that remains when each class loses as many nodes as its quota says.

    None if there is no solution, or none under `below`. Raises OutOfWork where not even that
    there is a solution could be settled.
    """
    if witness is None:
        witness = oracle.solve(0, oracle.packing.target, classes, quotas)
        if witness is None:
            return None
    descent = _Descent(oracle, classes, quotas, witness)
    return descent.run(below)


class _Descent:
    """One walk from the highest node to the lowest."""

    def __init__(
        self, oracle: Oracle, classes: Sequence[int], quotas: Sequence[int], witness: Solution
    ) -> None:
        self._oracle = oracle
        self._packing = oracle.packing
        self._classes = classes
        self._quotas = quotas
        self._witness = witness
        self._forced = 0
        self._allowed = oracle.packing.target
        self._kept: list[list[int]] = [[] for _ in classes]

    def run(self, below: int | None) -> Least | None:
        """The least set, as in `least`."""
        target = self._packing.target
        class_of = _numbers(self._classes)
        missing = list(self._quotas)
        kept = 0
        for node in nodes_descending(target):
            number = class_of[node]
            try:
                taken = missing[number] > 0 and self._takes(node, number)
            except OutOfWork:
                # What is decided so far is proved; the rest is as the witness has it.
                return Least(target & ~self._witness.dropped, proved=False)
            if taken:
                self._forced |= 1 << node
                missing[number] -= 1
                continue
            self._allowed &= ~(1 << node)
            self._kept[number].append(node)
            kept |= 1 << node
            if below is not None and kept >= below:
                return None
        return Least(kept)

    def _takes(self, node: int, number: int) -> bool:
        """Whether `node` can be taken beside all that is decided; then the witness takes it."""
        packing, bit = self._packing, 1 << node
        if packing.fixed & bit:
            return False
        if self._witness.dropped & bit:
            return True
        if any(self._is_dearer(node, other) for other in self._kept[number]):
            return False
        if packing.free & bit:
            self._exchange(bit)
            return True
        if self._oracle.work.heuristics and self._repair(node, number):
            return True
        found = self._oracle.solve(self._forced | bit, self._allowed, self._classes, self._quotas)
        if found is None:
            return False
        self._witness = found
        return True

    def _undecided_dropped(self, members: int) -> int:
        return self._witness.dropped & members & ~self._forced

    def _exchange(self, bit: int) -> None:
        """Take a free node instead of some undecided one of its class."""
        members = next(members for members in self._classes if members & bit)
        spare = self._undecided_dropped(members)
        self._give_up(spare & -spare)
        self._witness.free |= bit

    def _repair(self, node: int, number: int) -> bool:
        """Take `node` in place of an undecided node of its class, in a bin that then has room."""
        spare = self._undecided_dropped(self._classes[number])
        for bin_number, costs in self._packing.options[node]:
            taken = self._witness.taken[bin_number]
            rows = self._packing.bins[bin_number].rows
            room = [
                row.slack - cost - sum([row.weights[other] for other in each_node(taken)])
                for row, cost in zip(rows, costs, strict=True)
            ]
            if not room or min(room) >= 0:
                candidates = [spare & -spare]
            else:
                candidates = [
                    1 << other
                    for other in each_node(taken & spare)
                    if all(
                        left + row.weights[other] >= 0 for left, row in zip(room, rows, strict=True)
                    )
                ][:2]
            for out in candidates:
                if fits(self._packing, bin_number, taken & ~out | 1 << node):
                    self._give_up(out)
                    self._witness.taken[bin_number] |= 1 << node
                    return True
        return False

    def _give_up(self, out: int) -> None:
        self._witness.free &= ~out
        self._witness.taken = [mask & ~out for mask in self._witness.taken]

    def _is_dearer(self, node: int, kept: int) -> bool:
        """Lemma 11: `kept` could be taken wherever `node` is, so that `node` is kept as well."""
        packing = self._packing
        if packing.free >> kept & 1:
            return True
        if not packing.open >> kept & 1:
            return False
        at = dict(packing.options[kept])
        for number, costs in packing.options.get(node, ()):
            theirs = at.get(number)
            if theirs is None or any(a > b for a, b in zip(theirs, costs, strict=True)):
                return False
            if packing.has_groups and any(
                group >> kept & 1 and not group >> node & 1
                for row in packing.bins[number].rows
                for group, _ in row.groups
            ):
                return False
        return not packing.free >> node & 1


def _numbers(classes: Sequence[int]) -> dict[int, int]:
    return {node: number for number, members in enumerate(classes) for node in each_node(members)}

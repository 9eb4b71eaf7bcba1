"""Preferred sets that must touch a given number of sockets (P-4), by branch and bound.

The best set without the rule bounds every set with it. Where it touches the right number it is
the answer; else one socket is decided on: nothing of it, or something of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numalign.families.found import Best
from numalign.families.oracle import Oracle
from numalign.families.packing import joint_bin, packing
from numalign.families.pieces import Compiled, Row
from numalign.families.sized import best_of_size
from numalign.families.work import Work
from numalign.model.hint import SocketRule
from numalign.model.numa_mask import MAX_NUMA_ID


@dataclass(frozen=True, slots=True)
class _Decided:
    """Sockets decided on, by their number in the rule."""

    touched: frozenset[int] = frozenset()
    avoided: frozenset[int] = frozenset()


def search_joint(
    pieces: Sequence[Compiled],
    ground: int,
    size: int,
    rules: Sequence[SocketRule],
    best: Best,
    work: Work,
) -> None:
    """Offer `best` the best common member of `pieces` with `size` nodes that keeps all `rules`.

    `ground` is where all pieces and the machine meet. Raises OutOfWork.
    """
    _search(pieces, ground, size, rules, [_Decided()] * len(rules), best, work)


def _search(
    pieces: Sequence[Compiled],
    ground: int,
    size: int,
    rules: Sequence[SocketRule],
    decided: Sequence[_Decided],
    best: Best,
    work: Work,
) -> None:
    only = joint_bin(pieces, ground)
    if only is None or ground.bit_count() < size:
        return
    if rules:
        work.step()
    relaxed = best_of_size(Oracle(packing(ground, (only,)), work), size, best)
    if relaxed is None:
        return
    for number, rule in enumerate(rules):
        touched = _touched(rule, relaxed.mask)
        if len(touched) == rule.touched:
            continue
        here = decided[number]
        undecided = frozenset(range(len(rule.members))) - here.touched - here.avoided
        too_many = len(touched) > rule.touched
        candidates = undecided & touched if too_many else undecided - touched
        if not candidates:
            # What is decided leaves no way to touch the right number.
            return
        socket = max(candidates)
        without = _Decided(here.touched, here.avoided | {socket})
        within = _Decided(here.touched | {socket}, here.avoided)
        for branch in (without, within) if too_many else (within, without):
            room = len(rule.members) - len(branch.avoided)
            if len(branch.touched) > rule.touched or room < rule.touched:
                continue
            nodes = ground & ~rule.members[socket] if branch is without else ground
            more = (
                [*pieces] if branch is without else [*pieces, _something_of(rule, socket, ground)]
            )
            if branch is within and not rule.members[socket] & ground:
                continue
            changed = [*decided]
            changed[number] = branch
            _search(more, nodes, size, rules, changed, best, work)
        return
    best.offer(relaxed)


def _touched(rule: SocketRule, mask: int) -> frozenset[int]:
    return frozenset(i for i, members in enumerate(rule.members) if members & mask)


def _something_of(rule: SocketRule, socket: int, ground: int) -> Compiled:
    """All sets that touch the socket, as a piece."""
    members = rule.members[socket] & ground
    weights = tuple(members >> node & 1 for node in range(MAX_NUMA_ID + 1))
    return Compiled(ground, 0, (Row(1, weights, (), members.bit_count()),))

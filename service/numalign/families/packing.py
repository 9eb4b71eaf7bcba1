"""The packing problem behind every search: which nodes may be taken away, and by whom.

A set of nodes M within T comes out of a merge if T without M can be shared out among *bins*,
one for each piece, so that no bin takes a node that its piece must have and none loses more
than its slack (Lemma 5). A preferred set is the same with one bin for all pieces (Lemma 4).
Here the bins are prepared: rows that cannot bind go, slacks become reachable sums (Lemma 9), and
nodes that some bin takes for nothing, or that none can take, are told from the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TypeAlias

from numalign.families.pieces import Compiled, Groups, Weights

LARGEST_SUM = 8000
"""Slacks up to this are lowered to the largest sum that weights can reach."""

Option: TypeAlias = tuple[int, tuple[int, ...]]
"""A bin that can take a node, and what that costs in each of its rows."""


@dataclass(frozen=True, slots=True)
class Loss:
    """One threshold seen from what is taken: at most `slack`.

    `weights` by node id; a group's value is lost with the last of its nodes.
    """

    slack: int
    weights: Weights
    groups: Groups


@dataclass(frozen=True, slots=True)
class Bin:
    """What takes nodes away: those of `removable`, as far as the rows let it."""

    removable: int
    rows: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class Packing:
    """A prepared problem over the nodes of `target`.

    `free` nodes are taken by some bin for nothing, `fixed` ones by none, and `open` ones by the
    bins of `options`. Rows and groups concern open nodes alone.
    """

    target: int
    bins: tuple[Bin, ...]
    free: int
    fixed: int
    open: int
    options: dict[int, tuple[Option, ...]]
    has_groups: bool


def joint_bin(pieces: Iterable[Compiled], ground: int) -> Bin | None:
    """One bin that stands for all `pieces` at once, over their common `ground` (Lemma 4).

    None if not even the whole ground is a member of all of them.
    """
    must = 0
    rows = []
    for piece in pieces:
        must |= piece.must
        for row in piece.rows:
            slack = row.weigh(ground) - row.need
            if slack < 0:
                return None
            weights, groups = _folded(row.weights, row.groups, ground)
            rows.append(Loss(slack, weights, groups))
    return None if must & ~ground else Bin(ground & ~must, tuple(rows))


def own_bin(piece: Compiled, target: int) -> Bin:
    """The bin of one piece, which may lose what it has to spare on its whole ground (Lemma 5).

    A group with a node outside `target` is never lost.
    """
    rows = tuple(
        Loss(
            row.total - row.need,
            row.weights,
            tuple(entry for entry in row.groups if not entry[0] & ~target),
        )
        for row in piece.rows
    )
    return Bin(target & ~piece.must, rows)


def packing(target: int, bins: Sequence[Bin]) -> Packing:
    """The prepared problem of taking nodes of `target` away into `bins`."""
    free, tidied = 0, list(bins)
    while True:
        tidied = [_tidied(taker, free) for taker in tidied]
        found = free
        for taker in tidied:
            found |= _taken_for_nothing(taker)
        if found == free:
            break
        free = found
    bound = tuple(Bin(taker.removable, tuple(map(_tight, taker.rows))) for taker in tidied)
    options: dict[int, list[Option]] = {}
    for number, taker in enumerate(bound):
        for node in each_node(taker.removable):
            costs = tuple([row.weights[node] for row in taker.rows])
            options.setdefault(node, []).append((number, costs))
    taken = 0
    for node in options:
        taken |= 1 << node
    return Packing(
        target=target,
        bins=bound,
        free=free,
        fixed=target & ~free & ~taken,
        open=taken,
        options={node: tuple(choices) for node, choices in options.items()},
        has_groups=any(row.groups for taker in bound for row in taker.rows),
    )


def each_node(mask: int) -> Iterator[int]:
    """The node ids in `mask`, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def nodes_descending(mask: int) -> Iterator[int]:
    """The node ids in `mask`, from the highest."""
    while mask:
        node = mask.bit_length() - 1
        yield node
        mask ^= 1 << node


def _folded(weights: Weights, groups: Groups, ground: int) -> tuple[Weights, Groups]:
    """Groups cut to `ground`; those of one node are weights of that node."""
    if not groups:
        return weights, groups
    own = list(weights)
    shared: dict[int, int] = {}
    for mask, value in groups:
        inside = mask & ground
        if inside & (inside - 1):
            shared[inside] = shared.get(inside, 0) + value
        elif inside:
            own[inside.bit_length() - 1] += value
    return tuple(own), tuple(shared.items())


def _tidied(taker: Bin, free: int) -> Bin:
    """Without what is free elsewhere, nodes that are too dear, and rows that cannot bind.

    A group with a free node is never lost: that node is taken where it costs nothing.
    """
    removable = taker.removable & ~free
    while True:
        before = removable
        rows = []
        for row in taker.rows:
            groups = tuple(entry for entry in row.groups if not entry[0] & ~removable)
            total = sum(value for _, value in groups)
            for node in each_node(removable):
                weight = row.weights[node]
                if weight > row.slack:
                    removable &= ~(1 << node)
                else:
                    total += weight
            if total > row.slack:
                rows.append(Loss(row.slack, row.weights, groups))
        if removable == before:
            return Bin(removable, tuple(_within(row, removable) for row in rows))


def _within(row: Loss, removable: int) -> Loss:
    weights = tuple(
        [weight if removable >> node & 1 else 0 for node, weight in enumerate(row.weights)]
    )
    return Loss(row.slack, weights, row.groups)


def _taken_for_nothing(taker: Bin) -> int:
    costly = 0
    for row in taker.rows:
        for mask, _ in row.groups:
            costly |= mask
        for node in each_node(taker.removable & ~costly):
            if row.weights[node]:
                costly |= 1 << node
    return taker.removable & ~costly


def _tight(row: Loss) -> Loss:
    """The same row in the largest unit, its slack a sum that can be reached (Lemma 9)."""
    amounts = [weight for weight in row.weights if weight]
    amounts += [value for _, value in row.groups]
    unit = gcd(*amounts)
    slack = row.slack // unit
    if slack <= LARGEST_SUM:
        within = (1 << (slack + 1)) - 1
        sums = 1
        for amount in amounts:
            if amount // unit <= slack:
                sums |= sums << (amount // unit) & within
        slack = sums.bit_length() - 1
    return Loss(
        slack,
        tuple([weight // unit for weight in row.weights]),
        tuple([(mask, value // unit) for mask, value in row.groups]),
    )

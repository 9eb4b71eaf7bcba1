"""Described lists written out: every mask, in the order in which a provider would list it.

For machines with few nodes, where listing is cheaper than anything else; for comparing with
recorded lists; and to name a few choices to a person. Rule TM-5 gives the order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from numalign.families.pieces import Compiled, compiled_all
from numalign.model.hint import FamilyList, HintList, ProviderHints, SocketRule, TopologyHint
from numalign.model.numa_mask import NumaMask, nodes_of


def expand(family: FamilyList) -> tuple[TopologyHint, ...]:
    """Every hint of `family`, by size, then lexicographic; hints without affinity last.

    The work doubles with every node of a piece's ground.
    """
    masks: dict[NumaMask, bool] = {}
    for piece in compiled_all(family.pieces):
        for mask in _members(piece):
            masks[mask] = is_preferred(family, mask)
    nil: set[TopologyHint] = set()
    for hint in family.explicit:
        if hint.mask is None:
            nil.add(hint)
        else:
            masks[hint.mask] = masks.get(hint.mask, False) or hint.preferred
    listed = [TopologyHint(mask, masks[mask]) for mask in sorted(masks, key=listing_order)]
    return (*listed, *sorted(nil, key=_preferred_first))


def expanded(hints: ProviderHints) -> Mapping[str, tuple[TopologyHint, ...] | None] | None:
    """A provider's answer with every list written out."""
    if hints is None:
        return None
    return {resource: expanded_list(given) for resource, given in hints.items()}


def expanded_list(hints: HintList) -> tuple[TopologyHint, ...] | None:
    """One list written out, if it is not listed already."""
    return expand(hints) if isinstance(hints, FamilyList) else hints


def is_preferred(family: FamilyList, mask: NumaMask) -> bool:
    """Whether `mask` is preferred if it is in a piece of `family`."""
    if mask.bit_count() == family.preferred_count:
        return True
    return family.sockets is not None and touches(family.sockets, mask)


def is_empty(family: FamilyList) -> bool:
    """Whether `family` has no hint at all."""
    return not family.explicit and not compiled_all(family.pieces)


def touches(rule: SocketRule, mask: int) -> bool:
    """Whether `mask` touches as many sockets as `rule` wants."""
    return sum(1 for members in rule.members if members & mask) == rule.touched


def listing_order(mask: NumaMask) -> tuple[int, tuple[int, ...]]:
    """Sort key of the order in which masks are listed (TM-5)."""
    return (mask.bit_count(), nodes_of(mask))


def _preferred_first(hint: TopologyHint) -> bool:
    return not hint.preferred


def _members(piece: Compiled) -> Iterator[NumaMask]:
    masks = [0]
    sums = [[0] for _ in piece.rows]
    for node in nodes_of(NumaMask(piece.ground)):
        masks += [mask | 1 << node for mask in masks]
        for table, row in zip(sums, piece.rows, strict=True):
            weight = row.weights[node]
            table += [total + weight for total in table]
    for row, table in zip(piece.rows, sums, strict=True):
        for group, value in row.groups:
            for i, mask in enumerate(masks):
                if mask & group:
                    table[i] += value
    for i, mask in enumerate(masks):
        if not mask or piece.must & ~mask:
            continue
        if all(table[i] >= row.need for table, row in zip(sums, piece.rows, strict=True)):
            yield NumaMask(mask)

"""Topology hints, as providers give them and the merge returns them.

Five absences are distinct, because each decides merges differently (TM-20): no mapping at
all, an empty mapping, no list for a resource, an empty list, and a hint without affinity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from numalign.model.numa_mask import EMPTY, NumaMask


@dataclass(frozen=True, slots=True)
class TopologyHint:
    """NUMA nodes that could hold a request, and whether that is as good as it gets.

    `mask` None means no affinity: any node will do. The zero value is (None, False).
    """

    mask: NumaMask | None
    preferred: bool


NO_HINT = TopologyHint(None, False)
"""What a lookup of an unknown container returns (TM-50)."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A least amount that a set of nodes has to offer: what its nodes weigh reaches `need`.

    `weights` has one entry for each node of the piece's ground, ascending, none below 0.
    `groups` are weights of two or more nodes together, which count once if any is in the set.
    """

    need: int
    weights: tuple[int, ...]
    groups: tuple[tuple[NumaMask, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """All non-empty sets of nodes within `ground` that hold `must` and reach every threshold."""

    ground: NumaMask
    must: NumaMask = EMPTY
    thresholds: tuple[Threshold, ...] = ()


@dataclass(frozen=True, slots=True)
class SocketRule:
    """A set of nodes is preferred, too, if it touches exactly `touched` of `members`.

    `members` are the nodes of each socket; a node may be on several.
    """

    members: tuple[NumaMask, ...]
    touched: int


@dataclass(frozen=True, slots=True)
class FamilyList:
    """The hints for one resource, described instead of listed.

    They are those of `explicit`, and one for every set of nodes in a piece. Such a set is
    preferred if it has `preferred_count` nodes (None: none has) or `sockets` says so. A set
    that comes both ways is preferred if either is.
    """

    pieces: tuple[Piece, ...]
    explicit: tuple[TopologyHint, ...] = ()
    preferred_count: int | None = None
    sockets: SocketRule | None = None


HintList: TypeAlias = tuple[TopologyHint, ...] | FamilyList | None
"""The hints for one resource: None is "no preference", () is "cannot be placed"."""

ProviderHints: TypeAlias = Mapping[str, HintList] | None
"""What one provider answers: None is no mapping, {} an empty one; else resource to list."""

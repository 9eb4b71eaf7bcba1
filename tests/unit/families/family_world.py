"""Made-up machines and lists of hints, and what the enumeration makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from numalign.families.merge import Merged, merge_offers
from numalign.families.offers import offer_of
from numalign.families.work import Work
from numalign.model.hint import FamilyList, Piece, SocketRule, Threshold, TopologyHint
from numalign.model.numa_mask import NumaMask, mask_of
from numalign.topology.merge import listed, merge
from numalign.topology.numa_info import Fitter, NumaInfo, narrowest

OUTSIDE = 11
"""A node that no machine here has."""


@dataclass(frozen=True)
class World:
    """A machine with distances, and the described lists of one merge."""

    numa: NumaInfo
    lists: tuple[FamilyList, ...]

    def fitter(self, *, closest: bool) -> Fitter:
        """The order between equally wide masks."""
        return self.numa.closest if closest else narrowest

    def enumerated(self, *, closest: bool) -> TopologyHint:
        """What the merge makes of the lists written out."""
        return merge(listed(self.lists), self.numa.default_mask, self.fitter(closest=closest))

    def merged(self, *, closest: bool, heuristics: bool = True, limit: int = 200_000) -> Merged:
        """What the merge makes of the lists as they are."""
        return merge_offers(
            [offer_of(one) for one in self.lists],
            self.numa.default_mask,
            self.fitter(closest=closest),
            Work(limit=limit, heuristics=heuristics),
        )


def world(random: Random, largest: int) -> World:
    """A machine of up to `largest` nodes, holes in its ids now and then."""
    size = random.randint(1, largest)
    nodes = tuple(range(size))
    if random.random() < 0.3:
        nodes = tuple(sorted(random.sample(range(OUTSIDE), size)))
    common = random.randint(1, size)
    rule = _sockets(random, nodes)
    lists = tuple(_list(random, nodes, common, rule) for _ in range(random.randint(1, 4)))
    return World(info(nodes, _distances(random, nodes)), lists)


def info(nodes: Sequence[int], distances: dict[int, tuple[int, ...]]) -> NumaInfo:
    return NumaInfo(nodes=tuple(nodes), default_mask=mask_of(nodes), distances=distances)


def some(random: Random, nodes: Sequence[int], share: float) -> NumaMask:
    """A mask of about `share` of the nodes; may be empty."""
    return mask_of(node for node in nodes if random.random() < share)


def piece(random: Random, nodes: Sequence[int]) -> Piece:
    """A family, from loose to tight or empty; equal weights, small ones, or 36 bits."""
    ground = some(random, nodes, random.choice((0.7, 0.9, 1))) or mask_of(nodes[:1])
    inside = [node for node in nodes if ground >> node & 1]
    must = some(random, inside, random.choice((0, 0, 0, 0.2)))
    thresholds = tuple(
        _threshold(random, nodes, inside) for _ in range(random.choice((0, 1, 1, 2, 3)))
    )
    return Piece(ground, must, thresholds)


def _threshold(random: Random, nodes: Sequence[int], inside: Sequence[int]) -> Threshold:
    most = random.choice((1, 2, 4, 8, 1000, 1 << 36))
    weights = [random.randint(0, most) for _ in inside]
    if random.random() < 0.3:
        weights = [most if weight else 0 for weight in weights]
    groups: list[tuple[NumaMask, int]] = []
    if random.random() < 0.4:
        groups = _groups(random, nodes, inside, most)
        if random.random() < 0.5:
            weights = [0] * len(inside)
    ground = mask_of(inside)
    total = sum(weights) + sum(value for mask, value in groups if mask & ground)
    share = random.choice((0, 0.2, 0.5, 0.7, 0.9, 1, random.random()))
    return Threshold(int(total * share), tuple(weights), tuple(groups))


def _groups(
    random: Random, nodes: Sequence[int], inside: Sequence[int], most: int
) -> list[tuple[NumaMask, int]]:
    if random.random() < 0.5:
        width = random.choice((2, 3, 4))
        return [
            (mask_of(inside[i : i + width]), random.randint(1, max(most // 2, 1)))
            for i in range(0, len(inside), width)
        ]
    return [
        (some(random, nodes, 0.4), random.randint(0, most)) for _ in range(random.randint(1, 4))
    ]


def _list(random: Random, nodes: Sequence[int], common: int, rule: SocketRule) -> FamilyList:
    pieces = tuple(piece(random, nodes) for _ in range(random.choice((1, 1, 1, 1, 2, 0))))
    explicit: list[TopologyHint] = []
    if random.random() < 0.35 or not pieces:
        around = [*nodes, OUTSIDE] if random.random() < 0.2 else nodes
        for _ in range(random.randint(1, 5)):
            mask = some(random, around, random.random())
            given = mask if mask or random.random() < 0.3 else None
            explicit.append(TopologyHint(given, random.random() < 0.5))
    if random.random() < 0.05:
        explicit.append(TopologyHint(None, random.random() < 0.5))
    return FamilyList(
        pieces,
        tuple(explicit),
        random.choice((common, common, common, random.randint(1, len(nodes)), None)),
        rule if random.random() < 0.3 else None,
    )


def _sockets(random: Random, nodes: Sequence[int]) -> SocketRule:
    count = random.randint(1, 4)
    members = tuple(mask_of(node for node in nodes if node // 2 % count == i) for i in range(count))
    if random.random() < 0.3:
        members = tuple(some(random, nodes, 0.5) for _ in range(count))
    return SocketRule(members, random.randint(1, count))


def _distances(random: Random, nodes: Sequence[int]) -> dict[int, tuple[int, ...]]:
    kind = random.choice(("pairs", "packages", "ring", "random", "one way"))
    length = OUTSIDE + 1
    seed = random.random()

    def apart(a: int, b: int) -> int:
        if a == b and kind != "one way":
            return 10
        if kind == "pairs":
            return 12 if a // 2 == b // 2 else 20
        if kind == "packages":
            return 12 if a // 2 == b // 2 else 15 if a // 4 == b // 4 else 21
        if kind == "ring":
            return 10 + min(abs(a - b), length - abs(a - b))
        first, second = (a, b) if kind == "one way" else sorted((a, b))
        return Random(f"{seed} {first} {second}").randint(10, 14)

    return {a: tuple(apart(a, b) for b in range(length)) for a in nodes}

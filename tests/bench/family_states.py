"""Made-up states of machines with many NUMA nodes: what four resources offer for one request.

Three kinds: *fragmented*, where a random share of everything is in use; *aligned*, where all
resources ask for the same number of nodes, so that sets preferred by all exist and are tight; and
*shared*, where devices belong to several nodes at once. Lists are as providers send them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from numalign.model.hint import FamilyList, Piece, Threshold, TopologyHint
from numalign.model.numa_mask import EMPTY, NumaMask, mask_of
from numalign.topology.numa_info import NumaInfo

PACKAGES = 8
_CPUS = 16
_GIB = 64

DISTANCES = ("packages", "pairs", "hops")


def machine(nodes: int, kind: str) -> NumaInfo:
    """Eight packages; `pairs` are nearer inside them, `hops` lead from package to package."""
    package = max(nodes // PACKAGES, 1)

    def apart(a: int, b: int) -> int:
        if a == b:
            return 10
        between = abs(a // package - b // package)
        if kind == "pairs":
            return 11 if a // 2 == b // 2 else 14 if not between else 21
        if kind == "hops":
            return 12 if not between else 20 + 4 * min(between, PACKAGES - between)
        return 12 if not between else 20

    return NumaInfo(
        nodes=tuple(range(nodes)),
        default_mask=mask_of(range(nodes)),
        distances={a: tuple(apart(a, b) for b in range(nodes)) for a in range(nodes)},
    )


def fragmented(random: Random, nodes: int) -> list[FamilyList]:
    """Four lists on a machine of which a random share is in use; each can be met somewhere."""
    return _met(lambda: _fragmented(random, nodes))


def aligned(random: Random, nodes: int) -> list[FamilyList]:
    """Four lists that ask for the same number of nodes, up to half of them."""
    return _met(lambda: _aligned(random, nodes))


def shared(random: Random, nodes: int) -> list[FamilyList]:
    """CPUs and memory, and two resources whose devices are on 2, 4 or 8 nodes each."""
    return _met(lambda: _shared(random, nodes))


def _met(draw: Callable[[], list[FamilyList | None]]) -> list[FamilyList]:
    while True:
        lists = draw()
        met = [one for one in lists if one is not None]
        if len(met) == len(lists):
            return met


def _fragmented(random: Random, nodes: int) -> list[FamilyList | None]:
    share, used = random.uniform(0.02, 0.5), random.uniform(0.1, 0.9)
    few = (1, 2, 4)
    return [
        _plain(random, range(nodes), _CPUS, nodes * _CPUS * share, used),
        _memory(random, nodes, share * random.uniform(0.3, 1), used),
        _plain(random, range(nodes), size := random.choice(few), nodes * size * share, used),
        _plain(
            random, range(0, nodes, 2), size := random.choice(few), nodes * size * share / 2, used
        ),
    ]


def _aligned(random: Random, nodes: int) -> list[FamilyList | None]:
    wanted, used = random.randint(1, nodes // 2), random.uniform(0.1, 0.6)
    sizes = (_CPUS, _GIB, 2, 4)
    return [
        _plain(random, range(nodes), size, (wanted - random.random()) * size, used)
        for size in sizes
    ]


def _shared(random: Random, nodes: int) -> list[FamilyList | None]:
    share, used = random.uniform(0.02, 0.5), random.uniform(0.1, 0.9)
    return [
        _plain(random, range(nodes), _CPUS, nodes * _CPUS * share, used),
        _memory(random, nodes, share * random.uniform(0.3, 1), used),
        _on_packages(random, nodes, share, used),
        _on_packages(random, nodes, share, used),
    ]


def _free(random: Random, count: int, capacity: int, used: float) -> tuple[int, ...]:
    return tuple(
        random.randint(0, capacity) if random.random() < used else capacity for _ in range(count)
    )


def _plain(
    random: Random, nodes: Sequence[int], capacity: int, amount: float, used: float
) -> FamilyList | None:
    """Equal nodes of `capacity` CPUs or devices; None where what is free is not enough."""
    free = _free(random, len(nodes), capacity, used)
    need = max(1, int(amount))
    if sum(free) < need:
        return None
    piece = Piece(mask_of(nodes), thresholds=(Threshold(need, free),))
    return FamilyList((piece,), (), -(-need // capacity))


def _memory(random: Random, nodes: int, share: float, used: float) -> FamilyList | None:
    """Memory, of which up to a quarter is on pairs of nodes that are in use together."""
    shuffled = random.sample(range(nodes), nodes)
    pairs = [shuffled[2 * i : 2 * i + 2] for i in range(random.randint(0, nodes // 8))]
    single = sorted(set(range(nodes)) - {node for pair in pairs for node in pair})
    need = max(1, int(nodes * _GIB * share)) << 30
    free = tuple(amount << 30 for amount in _free(random, len(single), _GIB, used))
    preferred = -(-need // (_GIB << 30))
    if sum(free) < need:
        return None
    whole = tuple(
        TopologyHint(mask_of(pair), len(pair) == preferred)
        for pair in pairs
        if sum(_free(random, 2, _GIB, used)) << 30 >= need
    )
    piece = Piece(mask_of(single), EMPTY, (Threshold(need, free),))
    return FamilyList((piece,), whole, preferred)


def _on_packages(random: Random, nodes: int, share: float, used: float) -> FamilyList | None:
    """Devices that are on several nodes at once, and a mask has them all with one of these."""
    width, capacity = random.choice((2, 4, 8)), random.choice((1, 2, 4))
    groups = [mask_of(range(first, first + width)) for first in range(0, nodes, width)]
    free = _free(random, len(groups), capacity, used)
    need = max(1, int(len(groups) * capacity * share))
    if sum(free) < need:
        return None
    held: list[tuple[NumaMask, int]] = [
        (group, count) for group, count in zip(groups, free, strict=True) if count
    ]
    threshold = Threshold(need, (0,) * nodes, tuple(held))
    return FamilyList(
        (Piece(mask_of(range(nodes)), EMPTY, (threshold,)),), (), -(-need // capacity)
    )

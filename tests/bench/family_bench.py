"""How long a merge takes on machines of many NUMA nodes, partly used at random.

Four resources ask for a share of the machine each: CPUs, memory with groups of nodes that are in
use together, and devices on all nodes and on every second. Lists are as the providers send
them: written out up to eight nodes, described above.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from random import Random

from tests.bench.merge_bench import Case

from numalign.families.expand import expand
from numalign.model.hint import FamilyList, HintList, Piece, Threshold, TopologyHint
from numalign.model.numa_mask import EMPTY, mask_of
from numalign.topology.merge import FEW_NODES
from numalign.topology.numa_info import NumaInfo, narrowest
from numalign.topology.policy_best_effort import BestEffortPolicy

CASES = 200
AT_MOST = {8: 3.0, 16: 10.0, 32: 25.0, 64: 200.0}
"""Milliseconds of the slowest of a hundred merges, by number of NUMA nodes."""

_CPUS = 16
_GIB = 64


def machine(nodes: int, kind: str) -> NumaInfo:
    """Eight packages; `pairs` are nearer inside them, `hops` lead from package to package."""
    package = max(nodes // 8, 1)

    def apart(a: int, b: int) -> int:
        if a == b:
            return 10
        between = abs(a // package - b // package)
        if kind == "pairs":
            return 11 if a // 2 == b // 2 else 14 if not between else 21
        if kind == "hops":
            return 12 if not between else 20 + 4 * min(between, 8 - between)
        return 12 if not between else 20

    return NumaInfo(
        nodes=tuple(range(nodes)),
        default_mask=mask_of(range(nodes)),
        distances={a: tuple(apart(a, b) for b in range(nodes)) for a in range(nodes)},
    )


def fragmented(random: Random, nodes: int) -> list[FamilyList]:
    """Four lists on a machine of which a random share is in use; each can be met somewhere."""
    while True:
        share, used = random.uniform(0.02, 0.5), random.uniform(0.1, 0.9)
        lists = [
            _devices(random, range(nodes), _CPUS, share, used),
            _memory(random, nodes, share * random.uniform(0.3, 1), used),
            _devices(random, range(nodes), random.choice((1, 2, 4)), share, used),
            _devices(random, range(0, nodes, 2), random.choice((1, 2, 4)), share, used),
        ]
        met = [one for one in lists if one is not None]
        if len(met) == len(lists):
            return met


def measure() -> Iterator[tuple[Case, float]]:
    """Every kind of machine with the 99th percentile of its merges in milliseconds."""
    for nodes, at_most in AT_MOST.items():
        for kind in ("narrowest", "packages", "pairs", "hops"):
            yield (
                Case(f"{nodes} nodes, 4 resources, fragmented, {kind}, p99", at_most),
                _p99(nodes, kind),
            )


def _p99(nodes: int, kind: str) -> float:
    random = Random(f"{nodes} {kind}")
    info = machine(nodes, kind)
    policy = BestEffortPolicy(info, narrowest if kind == "narrowest" else info.closest)
    times = []
    for _ in range(CASES):
        given: list[HintList] = [
            expand(one) if nodes <= FEW_NODES else one for one in fragmented(random, nodes)
        ]
        answers = [{f"resource-{i}": one} for i, one in enumerate(given)]
        start = time.perf_counter()
        policy.decide(answers)
        times.append(time.perf_counter() - start)
    times.sort()
    return times[CASES * 99 // 100 - 1] * 1000


def _free(random: Random, count: int, capacity: int, used: float) -> tuple[int, ...]:
    return tuple(
        random.randint(0, capacity) if random.random() < used else capacity for _ in range(count)
    )


def _devices(
    random: Random, nodes: Sequence[int], capacity: int, share: float, used: float
) -> FamilyList | None:
    """Equal nodes of `capacity` CPUs or devices; None where what is free is not enough."""
    free = _free(random, len(nodes), capacity, used)
    need = max(1, int(len(nodes) * capacity * share))
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

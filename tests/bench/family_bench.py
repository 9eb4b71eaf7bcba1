"""How long a merge takes on machines of many NUMA nodes, in states that `family_states` makes up.

The slowest of a hundred states counts. Each is merged a few times and the fastest taken, so that
it is the state that was slow and not the machine it ran on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from tests.bench import yardstick
from tests.bench.family_states import DISTANCES, aligned, fragmented, machine, shared
from tests.bench.figures import Curve, Figure, at_most
from tests.bench.times import Times

from numalign.errors import Undecided
from numalign.families.expand import expand
from numalign.model.hint import FamilyList, HintList
from numalign.topology.merge import FEW_NODES
from numalign.topology.numa_info import narrowest
from numalign.topology.policy_best_effort import BestEffortPolicy

STATES = 300
"""So many of each kind; with distances, of each kind of distances a third."""

RUNS = 3
_LONG_SECONDS = 0.1
"""A state that takes this long is not merged again: a pause of the machine matters little."""

LIMITS = {8: 3.0, 16: 10.0, 32: 25.0, 64: 200.0}
"""Milliseconds of the slowest of a hundred merges in fragmented states, by number of NUMA nodes.

The other kinds are harder than what pods leave behind; they have no target.
"""

_KINDS: dict[str, Callable[[Random, int], list[FamilyList]]] = {
    "fragmented": fragmented,
    "aligned": aligned,
    "shared devices": shared,
}


@dataclass(frozen=True, slots=True)
class Merges:
    """The times of many merges, and how many of them were not settled."""

    times: Times
    unproved: int
    undecided: int
    yardstick: float


def measure() -> Iterator[Figure | Curve]:
    """The 99th percentile of each kind of state, and what was not settled."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for kind in _KINDS:
        aimed = kind == "fragmented"
        unsettled = {"not proved": 0, "not decided": 0}
        for nodes, limit in LIMITS.items():
            for mode, distances in (("narrowest", ("narrowest",)), ("closest", DISTANCES)):
                merges = _merges(kind, nodes, distances)
                yield Figure(
                    name=f"merge, {nodes} nodes, {kind}, {mode}, p99",
                    unit="ms",
                    value=merges.times.at(0.99),
                    floor=merges.yardstick,
                    target=at_most(limit) if aimed else None,
                )
                for share, line in ((0.5, "p50"), (0.99, "p99")):
                    points = curves.setdefault(f"{kind}, {mode}, {line}", [])
                    points.append((nodes, merges.times.at(share)))
                unsettled["not proved"] += merges.unproved
                unsettled["not decided"] += merges.undecided
        for how, count in unsettled.items():
            yield Figure(
                name=f"merges, {kind}, {how}, of {2 * len(LIMITS) * STATES}",
                unit="",
                value=count,
                target=at_most(0) if aimed else None,
            )
    for name, points in curves.items():
        yield Curve(plot="merge", name=name, points=tuple(points))


def _merges(kind: str, nodes: int, distances: Sequence[str]) -> Merges:
    times, sticks = [], []
    unproved = undecided = 0
    for one in distances:
        random = Random(f"{kind} {nodes} {one}")
        info = machine(nodes, one)
        policy = BestEffortPolicy(info, narrowest if one == "narrowest" else info.closest)
        for _ in range(STATES // len(distances)):
            stated = _KINDS[kind](random, nodes)
            given: list[HintList] = [expand(s) if nodes <= FEW_NODES else s for s in stated]
            answers = [{f"resource-{i}": hints} for i, hints in enumerate(given)]
            sticks.append(yardstick.milliseconds())
            runs: list[float] = []
            while len(runs) < RUNS and sum(runs) < _LONG_SECONDS:
                started = time.perf_counter()
                try:
                    verdict = policy.decide(answers)
                except Undecided:
                    undecided += 1
                    break
                runs.append(time.perf_counter() - started)
            else:
                unproved += not verdict.proved
            if runs:
                times.append(min(runs) * 1000)
    return Merges(Times.of(times), unproved, undecided, min(sticks))

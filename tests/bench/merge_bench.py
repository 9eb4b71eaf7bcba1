"""How long one merge takes on large machines.

The lists are the worst the merge can be given: every mask, none preferred or each resource
preferring another size, so that the whole set of intersections has to be found.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from tests.bench import yardstick
from tests.bench.figures import Figure, at_most

from numalign.model.hint import ProviderHints, TopologyHint
from numalign.model.numa_mask import NumaMask, mask_of, subsets
from numalign.topology.numa_info import Fitter, NumaInfo, narrowest
from numalign.topology.policy_best_effort import BestEffortPolicy

RESOURCES = 4
RUNS = 5


def machine(nodes: int) -> NumaInfo:
    """`nodes` nodes in pairs, each pair near and the others far."""
    ids = tuple(range(nodes))
    return NumaInfo(
        nodes=ids,
        default_mask=mask_of(ids),
        distances={
            a: tuple(10 if a == b else 12 if a // 2 == b // 2 else 20 + abs(a - b) for b in ids)
            for a in ids
        },
    )


def answers(info: NumaInfo, preferred: Callable[[int, NumaMask], bool]) -> list[ProviderHints]:
    """One provider per resource, each with a hint for every mask."""
    masks = list(subsets(info.nodes))
    return [
        {f"resource-{n}": tuple(TopologyHint(mask, preferred(n, mask)) for mask in masks)}
        for n in range(RESOURCES)
    ]


def best_time(info: NumaInfo, fitter: Fitter, given: list[ProviderHints]) -> float:
    """Milliseconds of the fastest of a few merges."""
    policy = BestEffortPolicy(info, fitter)
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        policy.decide(given)
        times.append(time.perf_counter() - start)
    return min(times) * 1000


def never(resource: int, mask: NumaMask) -> bool:
    """No hint is preferred."""
    return resource < 0 and mask == 0


def half_of_the_nodes(resource: int, mask: NumaMask) -> bool:
    """Masks of a middling size are preferred, each resource another size: a clash."""
    return mask.bit_count() == resource + 3


LIMITS = {8: 5.0, 16: 1000.0}
"""Milliseconds of a merge, by number of NUMA nodes."""


def measure() -> Iterator[Figure]:
    """Every kind of merge with the milliseconds it took."""
    for nodes, limit in LIMITS.items():
        info = machine(nodes)
        for fitter, mode in ((narrowest, "narrowest"), (info.closest, "closest")):
            for preferred, kind in ((never, "none preferred"), (half_of_the_nodes, "clash")):
                given = answers(info, preferred)
                lists = f"{RESOURCES} x {2**nodes - 1} hints"
                yield Figure(
                    name=f"merge, {nodes} nodes, {lists}, {mode}, {kind}",
                    unit="ms",
                    value=best_time(info, fitter, given),
                    floor=min(yardstick.milliseconds() for _ in range(RUNS)),
                    target=at_most(limit),
                )

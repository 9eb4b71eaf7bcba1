"""The bounds of the search for close nodes are bounds, and its sums are the sums."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from tests.unit.families.family_world import info, world

from numalign.errors import Undecided
from numalign.families.distances import LARGEST_DISTANCE
from numalign.families.packing import each_node
from numalign.families.twins import Rest, Side, smaller_side
from numalign.model.numa_mask import NumaMask, mask_of
from numalign.topology.numa_info import MissingDistance


def cost(side: Side, picked: tuple[int, ...]) -> int:
    """What the nodes of `picked` cost among themselves, counted one by one."""
    classes = [
        next(i for i, members in enumerate(side.classes) if members >> node & 1) for node in picked
    ]
    total = sum(side.own[a] for a in classes)
    for first, second in combinations(classes, 2):
        total += side.within[first] if first == second else side.between[first][second]
    return total


@pytest.mark.parametrize("remain_share", [0.3, 0.5, 0.8])
def test_bounds_and_sums(remain_share: float) -> None:
    for seed in range(60):
        made = world(Random(seed), 7)
        distances = made.numa.closest.distances
        target = int(made.numa.default_mask)
        remain = max(1, int(remain_share * target.bit_count()))
        side = smaller_side(target, remain, distances)
        rest = Rest(side)
        for picked in combinations(each_node(target), side.pick):
            mask = mask_of(picked)
            kept = mask if side.keeps else NumaMask(target & ~mask)
            assert side.base + cost(side, picked) == distances.sum_of(kept)
        nothing_near = [0] * len(side.classes)
        for depth in range(len(side.classes)):
            later = [node for members in side.classes[depth:] for node in each_node(members)]
            for count in range(1, min(side.pick, len(later)) + 1):
                least = min(cost(side, picked) for picked in combinations(later, count))
                assert rest.by_pairs(depth, count, nothing_near) <= least
                assert rest.by_tree(depth, count, nothing_near) <= least


def test_sums_order_as_averages() -> None:
    """Lemma 15."""
    for seed in range(40):
        made = world(Random(seed), 6)
        distances = made.numa.closest.distances
        masks = [mask_of(nodes) for nodes in combinations(made.numa.nodes, 2)]
        by_sum = sorted(masks, key=lambda mask: (distances.sum_of(mask), mask))

        assert by_sum == sorted(masks, key=lambda mask: (made.numa.average_distance(mask), mask))


def test_twins_are_told_apart_by_no_distance() -> None:
    rows = {
        a: tuple(10 if a == b else 12 if a // 4 == b // 4 else 20 for b in range(8))
        for a in range(8)
    }

    assert info(range(8), rows).closest.distances.twins == (0b1111, 0b11110000)


def test_unknown_distances_are_refused_when_needed() -> None:
    distances = info((0, 1, 9), {0: (10, 20), 1: (20, 10), 9: (10, 20)}).closest.distances

    with pytest.raises(MissingDistance, match="NUMA node"):
        distances.require(mask_of((0, 9)))


def test_distances_that_sums_cannot_hold_apart_are_refused() -> None:
    huge = LARGEST_DISTANCE + 1
    distances = info((0, 1), {0: (10, huge), 1: (huge, 10)}).closest.distances

    with pytest.raises(Undecided, match="too large"):
        distances.require(mask_of((0, 1)))

"""The bound on distance and rows together is a bound, and cuts what neither alone would."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

import pytest
from tests.unit.families.family_world import info, world

from numalign.families.covers import Cover
from numalign.families.joint_bound import JointBound
from numalign.families.twins import Rest, Side, smaller_side
from numalign.model.numa_mask import NumaMask, mask_of


def choices(side: Side) -> Iterator[tuple[int, ...]]:
    """Every way to pick as many nodes as there are to pick, by class."""
    for counts in product(*(range(size + 1) for size in side.sizes)):
        if sum(counts) == side.pick:
            yield counts


def taken(side: Side, covers: list[Cover], counts: tuple[int, ...]) -> list[float] | None:
    """What each cover makes of the first classes; None where a class has not as many to take."""
    loads = [0.0] * len(covers)
    for number, count in enumerate(counts):
        gone = side.sizes[number] - count if side.keeps else count
        for i, cover in enumerate(covers):
            worth = cover.taken(number, gone)
            if worth is None:
                return None
            loads[i] += worth
    return loads


def cost(side: Side, counts: tuple[int, ...]) -> int:
    """The sum of distances as far as the first classes decide on it."""
    total = side.base
    for a, count in enumerate(counts):
        total += count * side.own[a] + count * (count - 1) // 2 * side.within[a]
        total += sum(count * counts[b] * side.between[a][b] for b in range(a))
    return total


def near(side: Side, counts: tuple[int, ...]) -> list[int]:
    """What each class costs per node beside the first classes."""
    return [
        sum(count * side.between[b][a] for b, count in enumerate(counts))
        for a in range(len(side.sizes))
    ]


def made(random: Random) -> tuple[Side, list[Cover]]:
    """A side of a made-up machine, and covers from loose to tight."""
    numa = world(random, 7).numa
    target = int(numa.default_mask)
    remain = random.randint(1, target.bit_count())
    side = smaller_side(target, remain, numa.closest.distances)
    removable = target if random.random() < 0.7 else target & random.getrandbits(11)
    covers = []
    for _ in range(random.randint(1, 3)):
        most = random.choice((1, 4, 1 << 36))
        weights = [random.randint(0, most) for _ in range(64)]
        limit = int(sum(weights[:7]) * random.random())
        covers.append(Cover(side.classes, removable, weights.__getitem__, limit))
    return side, covers


def test_no_solution_is_below_the_bound() -> None:
    for seed in range(150):
        random = Random(seed)
        side, covers = made(random)
        solutions = {
            counts: cost(side, counts)
            for counts in choices(side)
            if (loads := taken(side, covers, counts)) is not None
            and all(load <= cover.limit for load, cover in zip(loads, covers, strict=True))
        }
        aim = random.choice((0, 10, 1000, max(solutions.values(), default=50)))
        joint = JointBound(side, covers, aim)
        for counts, total in solutions.items():
            for depth in range(1, len(counts) + 1):
                first = counts[:depth]
                loads = taken(side, covers, first)
                assert loads is not None
                left = side.pick - sum(first)
                if left:
                    bound = joint.at(depth, left, cost(side, first), near(side, first), loads)
                    assert bound <= total, (seed, counts, depth)


PAIRS = info(
    range(8),
    {
        a: tuple(10 if a == b else 11 if a // 2 == b // 2 else 20 for b in range(8))
        for a in range(8)
    },
)
EVERYWHERE = NumaMask(0b1111_1111)


def one_of_each_pair(side: Side) -> Cover:
    """What is kept must have the even nodes: taking one away is too much already."""
    even = mask_of((0, 2, 4, 6))
    return Cover(side.classes, EVERYWHERE, lambda node: even >> node & 1, 0.5)


def test_what_is_close_and_does_not_fit_is_cut() -> None:
    """Two whole pairs would be closest, and only one node of each pair is enough."""
    side = smaller_side(int(EVERYWHERE), 4, PAIRS.closest.distances)
    cover = one_of_each_pair(side)
    spread = PAIRS.closest.distances.sum_of(mask_of((0, 2, 4, 6)))
    nothing = [0] * len(side.classes)

    by_distance = side.base + Rest(side).by_tree(0, 4, nothing)
    jointly = JointBound(side, [cover], spread).at(0, 4, side.base, nothing, [0.0])

    assert by_distance < jointly <= spread


def test_what_no_choice_can_take_is_out_of_reach() -> None:
    side = smaller_side(int(EVERYWHERE), 2, PAIRS.closest.distances)
    cover = Cover(side.classes, 0, lambda _: 0, 0)
    nothing = [0] * len(side.classes)

    assert JointBound(side, [cover], 100).at(0, 2, side.base, nothing, [0.0]) > 1 << 60


@pytest.mark.parametrize("late", [0, 1, 3])
def test_covers_that_came_later_do_not_count(late: int) -> None:
    """A search learns covers on its way; the bound keeps to those that it was made with."""
    side = smaller_side(int(EVERYWHERE), 4, PAIRS.closest.distances)
    nothing = [0] * len(side.classes)
    joint = JointBound(side, [one_of_each_pair(side)], 300)

    alone = joint.at(0, 4, side.base, nothing, [0.0])

    assert joint.at(0, 4, side.base, nothing, [0.0] + [9.0] * late) == alone

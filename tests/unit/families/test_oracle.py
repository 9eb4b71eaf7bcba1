"""The packing problem, against trying every way."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from random import Random

import pytest
from tests.unit.families.family_world import piece

from numalign.families import share_search
from numalign.families.narrowest import least
from numalign.families.oracle import Oracle
from numalign.families.packing import Bin, Loss, Packing, each_node, own_bin, packing
from numalign.families.pieces import Compiled, compiled
from numalign.families.questions import Loads, fits
from numalign.families.work import OutOfWork, Work
from numalign.model.hint import Piece, Threshold
from numalign.model.numa_mask import EMPTY, mask_of

NODES = range(6)
EVERYWHERE = mask_of(NODES)
CASES = 120


def loses(taker: Bin, mask: int) -> bool:
    """Whether the bin, as it was before any preparation, can lose all of `mask`."""
    return not mask & ~taker.removable and all(
        sum(row.weights[node] for node in each_node(mask))
        + sum(value for group, value in row.groups if not group & ~mask)
        <= row.slack
        for row in taker.rows
    )


def remaining_sets(target: int, bins: list[Bin]) -> set[int]:
    """Every set that can remain, by trying all ways to share nodes out."""
    nodes = list(each_node(target))
    found = set()
    for places in product(range(len(bins) + 1), repeat=len(nodes)):
        taken = [
            sum(1 << node for node, place in zip(nodes, places, strict=True) if place == i)
            for i in range(len(bins))
        ]
        if all(map(loses, bins, taken)):
            found.add(target & ~sum(taken))
    return found


def problem(random: Random, count: int) -> tuple[int, list[Bin]]:
    """A target and the bins of `count` random pieces that have members."""
    pieces: list[Compiled] = []
    while len(pieces) < count:
        made = compiled(piece(random, NODES))
        if made is not None:
            pieces.append(made)
    target = int(EVERYWHERE)
    for each in pieces:
        target &= each.ground
    return target, [own_bin(each, target) for each in pieces]


def tight(random: Random, count: int) -> tuple[int, list[Bin]]:
    """Bins with like weights and little room, so that only a search can tell."""
    bins = []
    for _ in range(count):
        weights = tuple(random.randint(2, 9) if node in NODES else 0 for node in range(64))
        bins.append(Bin(EVERYWHERE, (Loss(random.randint(3, 18), weights, ()),)))
    return int(EVERYWHERE), bins


def grouped(random: Random, count: int) -> tuple[int, list[Bin]]:
    """Bins with light nodes in heavy groups that overlap."""
    bins = []
    for _ in range(count):
        weights = tuple(random.randint(0, 4) if node in NODES else 0 for node in range(64))
        groups = {
            int(mask_of(random.sample(NODES, random.randint(2, 3)))): random.randint(1, 9)
            for _ in range(4)
        }
        rows = tuple(
            Loss(random.randint(2, 14), weights, tuple(groups.items()))
            for _ in range(random.randint(1, 2))
        )
        bins.append(Bin(EVERYWHERE, rows))
    return int(EVERYWHERE), bins


@pytest.mark.parametrize("heuristics", [True, False])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("make", [problem, tight, grouped])
def test_least_remaining_set(
    make: Callable[[Random, int], tuple[int, list[Bin]]], count: int, heuristics: bool
) -> None:
    """By size, and by quotas of two classes."""
    for seed in range(CASES // count**2):
        random = Random(seed)
        target, bins = make(random, count)
        possible = remaining_sets(target, bins)
        first = random.getrandbits(6) & target
        classes = [first, target & ~first]
        sizes = [mask.bit_count() for mask in classes]
        for kept in product(*(range(size + 1) for size in sizes)):
            fitting = [
                mask
                for mask in possible
                if all((mask & c).bit_count() == k for c, k in zip(classes, kept, strict=True))
            ]
            oracle = Oracle(packing(target, bins), Work(heuristics=heuristics))
            quotas = [size - k for size, k in zip(sizes, kept, strict=True)]
            found = least(oracle, classes, quotas)
            assert (None if found is None else found.mask) == min(fitting, default=None), seed
            if any(fitting):
                assert least(oracle, classes, quotas, below=min(fitting)) is None


def test_a_solution_respects_every_bin() -> None:
    for seed in range(CASES):
        random = Random(seed)
        target, bins = problem(random, 2)
        prepared = packing(target, bins)
        for size in range(target.bit_count() + 1):
            solution = Oracle(prepared, Work()).solve(0, target, (target,), (size,))
            if solution is None:
                continue
            assert solution.dropped.bit_count() == size
            for number, taken in enumerate(solution.taken):
                assert fits(prepared, number, taken)
                assert loses(bins[number], taken)


def test_skipping_what_only_seems_alike_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_search.ShareSearch, "_alike", lambda *_: True)

    with pytest.raises(AssertionError):
        test_least_remaining_set(tight, 2, heuristics=False)


def test_slack_becomes_the_largest_reachable_sum() -> None:
    """Lemma 9, worked example 4: three bins that hold three nodes each, not three and a bit."""
    weights = tuple(4 if node < 12 else 0 for node in range(64))
    everywhere = (1 << 12) - 1
    bins = [Bin(everywhere, (Loss(15, weights, ()),)) for _ in range(3)]
    prepared = packing(everywhere, bins)

    oracle = Oracle(prepared, Work())

    assert [row.slack for taker in prepared.bins for row in taker.rows] == [3, 3, 3]
    assert oracle.solve(0, everywhere, (everywhere,), (9,)) is not None
    assert oracle.solve(0, everywhere, (everywhere,), (10,)) is None
    assert oracle.work.steps == 0


def test_nodes_are_free_fixed_or_open() -> None:
    """A row that cannot bind is gone; a group with a free node is never lost."""
    heavy = Threshold(10, (9, 1, 1, 1), ((mask_of((1, 2)), 50),))
    light = Piece(mask_of((1, 3)), must=mask_of((3,)))
    made = [compiled(Piece(mask_of(range(4)), EMPTY, (heavy,))), compiled(light)]
    target = int(mask_of((0, 1, 2, 3)))
    bins = [own_bin(each, target) for each in made if each is not None]

    prepared = packing(target, bins)

    assert prepared.free == mask_of((0, 1, 2, 3))
    assert prepared.open == prepared.fixed == 0


@pytest.mark.parametrize(
    ("must", "need", "expected"),
    [
        pytest.param((), 2, 0, id="one-suffices"),
        pytest.param((0,), 2, mask_of((0,)), id="must-is-fixed"),
        pytest.param((), 8, mask_of(range(4)), id="all-needed"),
    ],
)
def test_fixed_nodes(must: tuple[int, ...], need: int, expected: int) -> None:
    made = compiled(Piece(mask_of(range(4)), mask_of(must), (Threshold(need, (2, 2, 2, 2)),)))
    assert made is not None

    assert packing(0b1111, [own_bin(made, 0b1111)]).fixed == expected


def test_loads_are_undone() -> None:
    """What a bin has left after a node is given back is what it had before."""
    weights = tuple(3 if node < 2 else 0 for node in range(64))
    prepared = Packing(
        target=3,
        bins=(Bin(3, (Loss(7, weights, ((3, 1),)),)),),
        free=0,
        fixed=0,
        open=3,
        options={0: ((0, (3,)),), 1: ((0, (3,)),)},
        has_groups=True,
    )
    loads = Loads(prepared)

    before = loads.take(0, 0, (3,))
    assert loads.take(0, 1, (3,)) == [4]
    assert loads.left == [[0]]
    loads.give_back(0, 1, [4])
    assert before is not None
    loads.give_back(0, 0, before)

    assert loads.left == [[7]]
    assert loads.taken == [0]


def test_a_search_that_may_not_step_says_so() -> None:
    """The limit stops the exact searches, not the bounds."""
    stopped = 0
    for seed in range(CASES):
        target, bins = tight(Random(seed), 3)
        for size in range(len(NODES) + 1):
            try:
                Oracle(packing(target, bins), Work(limit=0, heuristics=False)).solve(
                    0, target, (target,), (size,)
                )
            except OutOfWork:
                stopped += 1

    assert stopped > 0

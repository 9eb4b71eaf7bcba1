"""Ties between equally wide masks by how full the nodes are: the order, and merges under it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.errors import StartError
from numalign.families.merge import merge_offers
from numalign.families.offers import offer_of
from numalign.families.work import MOST_STEPS, Work
from numalign.model.hint import FamilyList, Piece, Threshold, TopologyHint
from numalign.model.ids import NumaId
from numalign.model.numa_mask import NumaMask, mask_of, nodes_of
from numalign.model.settings import NumaAllocationStrategy
from numalign.provider.values import NodeFacts, ResourceFacts
from numalign.topology.allocation_strategy import AllocationOrder, allocation_order
from numalign.topology.merge import merge
from numalign.topology.numa_info import MissingDistance, NumaInfo

MOST = NumaAllocationStrategy.MOST_ALLOCATED
LEAST = NumaAllocationStrategy.LEAST_ALLOCATED


def info(count: int, distances: Mapping[int, tuple[int, ...]] | None = None) -> NumaInfo:
    nodes = tuple(range(count))
    return NumaInfo(nodes=nodes, default_mask=mask_of(nodes), distances=distances or {})


def facts(
    *free: int, resource: str = "cpu", of: int = 16, reserved: int = 0, requested: int = 4
) -> ResourceFacts:
    return ResourceFacts(
        resource=resource,
        requested=requested,
        nodes=tuple(
            NodeFacts(node=NumaId(node), capacity=of, reserved=reserved, free=amount)
            for node, amount in enumerate(free)
        ),
    )


def order(strategy: NumaAllocationStrategy, numa: NumaInfo) -> AllocationOrder:
    made = allocation_order(strategy, numa, prefer_closest=bool(numa.distances))
    assert made is not None
    return made


def masks(width: int, count: int) -> list[NumaMask]:
    return [mask_of(nodes) for nodes in combinations(range(count), width)]


def test_none_is_no_order() -> None:
    assert (
        allocation_order(NumaAllocationStrategy.NONE, info(2, {0: (10,)}), prefer_closest=True)
        is None
    )


@pytest.mark.parametrize(
    ("strategy", "given_facts", "width", "expected"),
    [
        pytest.param(MOST, [facts(12, 8, 16)], 1, {1}, id="fullest"),
        pytest.param(LEAST, [facts(12, 8, 16)], 1, {2}, id="emptiest"),
        pytest.param(MOST, [facts(12, 8, 16)], 2, {0, 1}, id="fullest-two"),
        pytest.param(LEAST, [facts(12, 8, 16)], 2, {0, 2}, id="emptiest-two"),
        pytest.param(MOST, [facts(8, 8, 8)], 1, {0}, id="equally-full-the-lowest"),
        pytest.param(LEAST, [facts(8, 8, 8)], 1, {0}, id="equally-empty-the-lowest"),
        pytest.param(MOST, [], 1, {0}, id="nothing-known-the-lowest"),
        pytest.param(
            MOST,
            [facts(8, 16, 16), facts(9, 0, 9, resource="memory", of=10)],
            1,
            {1},
            id="mean-of-shares-not-of-amounts",
        ),
        pytest.param(
            MOST,
            [facts(12, 8, 16, requested=0), facts(1, 1, 0, resource="memory", of=2)],
            1,
            {2},
            id="only-what-is-asked-for",
        ),
        pytest.param(
            MOST,
            [facts(4, 4, 4), facts(0, 1, 1, resource="gpu", of=1, requested=1)],
            1,
            {0},
            id="devices-count-like-cpus",
        ),
        pytest.param(
            MOST, [facts(6, 7, 7, of=8, reserved=1)], 1, {0}, id="reserved-is-not-to-be-had"
        ),
    ],
)
def test_order(
    strategy: NumaAllocationStrategy,
    given_facts: list[ResourceFacts],
    width: int,
    expected: set[int],
) -> None:
    made = order(strategy, info(3))(given_facts)

    assert set(nodes_of(made(masks(width, 3)))) == expected


def test_the_narrowest_come_first() -> None:
    made = order(MOST, info(3))([facts(16, 0, 0)])

    assert made([mask_of([1, 2]), mask_of([0])]) == mask_of([0])


def test_a_node_without_the_resource_counts_with_the_others() -> None:
    nodes = facts(8, 0, 4).nodes
    without = ResourceFacts(
        resource="gpu",
        requested=1,
        nodes=(
            NodeFacts(node=NumaId(0), capacity=1, reserved=0, free=0),
            NodeFacts(node=NumaId(1), capacity=0, reserved=0, free=0),
            NodeFacts(node=NumaId(2), capacity=1, reserved=0, free=1),
        ),
    )
    given_facts = [ResourceFacts(resource="cpu", requested=1, nodes=nodes), without]

    # Free shares: 1/4 of 0, 0 of 1 (CPUs alone), 5/8 of 2.
    assert order(MOST, info(3))(given_facts)(masks(1, 3)) == mask_of([1])
    assert order(LEAST, info(3))(given_facts)(masks(1, 3)) == mask_of([2])


def test_odd_amounts_of_third_parties_are_kept_in_bounds() -> None:
    odd = ResourceFacts(
        resource="licences",
        requested=1,
        nodes=(
            NodeFacts(node=NumaId(0), capacity=4, reserved=9, free=7),
            NodeFacts(node=NumaId(1), capacity=4, reserved=0, free=70),
            NodeFacts(node=NumaId(63), capacity=4, reserved=0, free=0),
        ),
    )

    assert order(MOST, info(2))([odd])(masks(1, 2)) == mask_of([0])
    assert order(LEAST, info(2))([odd])(masks(1, 2)) == mask_of([1])


def test_distances_come_before_amounts() -> None:
    near = {0: (10, 12, 20), 1: (12, 10, 20), 2: (20, 20, 10)}
    made = order(MOST, info(3, near))([facts(16, 16, 0)])

    assert made(masks(2, 3)) == mask_of([0, 1])
    assert made(masks(1, 3)) == mask_of([2])


def test_a_missing_distance_stays_missing() -> None:
    made = order(MOST, info(3, {0: (10, 20, 20), 1: (20, 10), 2: (20,)}))([facts(1, 2, 3)])

    with pytest.raises(MissingDistance):
        made(masks(2, 3))


def test_distances_that_are_too_large_are_refused() -> None:
    row = (1 << 20, 1 << 20)

    with pytest.raises(StartError, match="a distance of 1048576 is too large") as refused:
        allocation_order(MOST, info(2, {0: row, 1: row}), prefer_closest=True)
    assert refused.value.setting == "numalign.placement.numaAllocationStrategy"


@pytest.mark.parametrize("count", [2, 8, 64])
def test_distances_of_a_kernel_are_never_too_large(count: int) -> None:
    rows = dict.fromkeys(range(count), (255,) * count)
    made = order(MOST, info(count, rows))([facts(*(16 for _ in range(count)))])

    made.distances.require(mask_of(range(count)))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_described_list_has_the_best_of_the_list_written_out(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 7))
    amounts = st.lists(st.integers(0, 16), min_size=count, max_size=count)
    free = data.draw(amounts)
    need = data.draw(st.integers(1, max(1, sum(free))))
    wanted = data.draw(st.integers(1, count))
    strategy = data.draw(st.sampled_from((MOST, LEAST)))
    rows = {node: tuple(data.draw(amounts)) for node in range(count)}
    numa = info(count, rows if data.draw(st.booleans()) else None)
    made = order(strategy, numa)([facts(*free)])
    enough = Threshold(need=need, weights=tuple(free))
    family = FamilyList(
        pieces=(Piece(ground=numa.default_mask, must=NumaMask(0), thresholds=(enough,)),),
        preferred_count=wanted,
    )
    written = [
        TopologyHint(mask, width == wanted)
        for width in range(1, count + 1)
        for mask in masks(width, count)
        if sum(free[node] for node in nodes_of(mask)) >= need
    ]

    described = merge_offers([offer_of(family)], numa.default_mask, made, Work())

    assert described.proved
    if written:
        assert described.best == merge([written], numa.default_mask, made)


@given(
    free=st.lists(st.integers(0, 16), min_size=2, max_size=6),
    width=st.integers(1, 6),
    strategy=st.sampled_from((MOST, LEAST)),
)
def test_the_sum_of_free_shares_decides_then_the_integer(
    free: list[int], width: int, strategy: NumaAllocationStrategy
) -> None:
    candidates = masks(min(width, len(free)), len(free))
    sign = 1 if strategy is MOST else -1

    best = order(strategy, info(len(free)))([facts(*free)])(candidates)

    def rank(mask: NumaMask) -> tuple[int, int]:
        return sign * sum(free[node] * 1000 // 16 for node in nodes_of(mask)), mask

    assert best == min(candidates, key=rank)


@pytest.mark.parametrize("closest", [False, True])
def test_a_machine_of_64_nodes_stays_within_the_work_of_a_merge(closest: bool) -> None:
    random = Random(33)
    free = [random.randint(0, 16) for _ in range(64)]
    rows = {
        n: tuple(10 if n == m else 12 if n // 8 == m // 8 else 32 for m in range(64))
        for n in range(64)
    }
    numa = info(64, rows if closest else None)
    enough = Threshold(need=40, weights=tuple(free))
    family = FamilyList(
        pieces=(Piece(ground=numa.default_mask, must=NumaMask(0), thresholds=(enough,)),),
        preferred_count=3,
    )
    work = Work()

    found = merge_offers(
        [offer_of(family)], numa.default_mask, order(MOST, numa)([facts(*free)]), work
    )

    assert found.proved
    assert found.best.preferred
    assert work.vectors + work.rounds < MOST_STEPS
    assert found.best.mask is not None
    assert sum(free[node] for node in nodes_of(found.best.mask)) >= 40

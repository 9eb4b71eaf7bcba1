"""Merging described lists comes to what merging them written out comes to.

NUMALIGN_FAMILY_CASES sets how many machines are made up per test, and so how long this takes.
"""

from __future__ import annotations

import os
from functools import partial
from random import Random
from typing import Any

import pytest
from tests.unit.families.family_world import OUTSIDE, World, info, world

from numalign.errors import InvalidInput, Undecided
from numalign.families import (
    closest,
    covers,
    keep_search,
    narrowest,
    preferred,
    prices,
    twins,
)
from numalign.families.expand import expand
from numalign.families.joint_bound import JointBound
from numalign.families.questions import Choice
from numalign.families.twins import Rest
from numalign.families.work import Work
from numalign.model.hint import FamilyList, Piece, Threshold, TopologyHint
from numalign.model.numa_mask import NumaMask, mask_of
from numalign.topology.merge import FEW_NODES, listed, merge, merge_stated
from numalign.topology.numa_info import MissingDistance, NumaInfo
from numalign.topology.numa_info import narrowest as by_integer
from numalign.topology.policy import Policy
from numalign.topology.policy_best_effort import BestEffortPolicy
from numalign.topology.policy_restricted import RestrictedPolicy
from numalign.topology.policy_single_numa_node import SingleNumaNodePolicy

CASES = int(os.environ.get("NUMALIGN_FAMILY_CASES", "120"))
BLOCKS = 4


def differing(seeds: range, largest: int, *, heuristics: bool) -> list[int]:
    """Seeds whose merge differs from the enumeration, in either order of masks."""
    wrong = []
    for seed in seeds:
        made = world(Random(seed), largest)
        for closest_first in (False, True):
            got = made.merged(closest=closest_first, heuristics=heuristics)
            if not got.proved or got.best != made.enumerated(closest=closest_first):
                wrong.append(seed)
    return wrong


@pytest.mark.parametrize("heuristics", [True, False], ids=["all", "exact-searches-alone"])
@pytest.mark.parametrize("block", range(BLOCKS))
def test_merge_is_the_enumeration(block: int, heuristics: bool) -> None:
    seeds = range(block * CASES, (block + 1) * CASES)

    assert differing(seeds, 3 + 2 * block, heuristics=heuristics) == []


def test_merge_is_the_enumeration_on_ten_nodes() -> None:
    seeds = range(10_000_000, 10_000_000 + max(CASES // 8, 10))

    assert differing(seeds, 10, heuristics=True) == []


@pytest.mark.parametrize(
    ("seed", "largest"),
    [pytest.param(14052, 9, id="groups-that-overlap-in-one-row")],
)
def test_machines_that_only_exact_searches_get_wrong(seed: int, largest: int) -> None:
    assert differing(range(seed, seed + 1), largest, heuristics=False) == []


def policies(numa: NumaInfo) -> list[Policy]:
    return [
        BestEffortPolicy(numa, by_integer),
        BestEffortPolicy(numa, numa.closest),
        RestrictedPolicy(numa, by_integer),
        RestrictedPolicy(numa, numa.closest),
        SingleNumaNodePolicy(numa),
    ]


def test_policies_decide_as_on_lists() -> None:
    for seed in range(CASES):
        made = world(Random(seed), 9)
        described = [{"r": one} for one in made.lists]
        written = [{"r": expand(one)} for one in made.lists]
        for policy in policies(made.numa):
            assert policy.decide(described) == policy.decide(written), seed


def test_stopped_work_never_changes_the_class_or_the_size() -> None:
    """Without a single step allowed, whatever is said is true."""
    outcomes = {"proved": 0, "unproved": 0, "undecided": 0}
    for seed in range(4 * CASES):
        made = world(Random(seed), 9)
        for closest_first in (False, True):
            expected = made.enumerated(closest=closest_first)
            try:
                got = made.merged(closest=closest_first, heuristics=False, limit=0)
            except Undecided:
                outcomes["undecided"] += 1
                continue
            assert got.best.preferred == expected.preferred, seed
            assert (got.best.mask or 0).bit_count() == (expected.mask or 0).bit_count(), seed
            if got.proved:
                assert got.best == expected, seed
            outcomes["proved" if got.proved else "unproved"] += 1

    assert all(outcomes.values()), outcomes


def ring(size: int) -> NumaInfo:
    rows = {
        a: tuple(10 + min(abs(a - b), size - abs(a - b)) for b in range(size)) for a in range(size)
    }
    return info(range(size), rows)


def test_policies_pass_on_what_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a ring of 64 with free amounts all over the place the search is ended."""
    monkeypatch.setattr("numalign.topology.merge.Work", partial(Work, limit=300))
    random = Random(1)
    numa = ring(64)
    lists = []
    for _ in range(4):
        free = tuple(random.randint(0, 1 << 36) for _ in range(64))
        enough = Threshold(sum(sorted(free)[16:48]), free)
        lists.append(FamilyList((Piece(numa.default_mask, thresholds=(enough,)),), (), 32))

    verdict = RestrictedPolicy(numa, numa.closest).decide([{"r": one} for one in lists])

    assert verdict.admitted
    assert not verdict.proved
    assert verdict.best.mask is not None
    assert verdict.best.mask.bit_count() == 32


def test_few_nodes_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def unexpected(*_: object) -> None:
        raise AssertionError("described lists on few nodes are written out")

    monkeypatch.setattr("numalign.topology.merge.merge_offers", unexpected)
    everywhere = mask_of(range(FEW_NODES))
    family = FamilyList((Piece(everywhere),), (), 1)

    merged = merge_stated([family], everywhere, by_integer)

    assert merged.best == TopologyHint(NumaMask(1), True)


def test_ground_outside_the_machine_is_refused() -> None:
    family = FamilyList((Piece(mask_of((0, OUTSIDE))),), (), 1)

    with pytest.raises(InvalidInput, match=r"nodes \[11\] are not NUMA nodes of the machine"):
        merge_stated([family], mask_of(range(9)), by_integer)


def test_distances_are_looked_up_only_where_they_decide() -> None:
    """TM-10: short rows matter only to masks that compare by distance."""
    nodes = (*range(9), 20)
    numa = info(nodes, dict.fromkeys(nodes, (10,) * 10))
    either = FamilyList((Piece(mask_of((3, 20))),), (), 1)
    one = FamilyList((Piece(mask_of((20,))),), (), 1)
    policy = RestrictedPolicy(numa, numa.closest)

    assert policy.decide([{"r": one}]).best == TopologyHint(mask_of((20,)), True)
    with pytest.raises(MissingDistance, match="NUMA node 20"):
        policy.decide([{"r": either}])


FULL8 = mask_of(range(8))


def additive(need: int, *free: int, at: NumaMask | None = None) -> Piece:
    ground = mask_of(range(len(free))) if at is None else at
    return Piece(ground, thresholds=(Threshold(need, free),))


PAIRS = info(
    range(8),
    {
        a: tuple(10 if a == b else 12 if a // 2 == b // 2 else 20 for b in range(8))
        for a in range(8)
    },
)
TWO_TIGHT = (
    FamilyList((additive(14, 3, 8, 5, 8, 2, 8, 7, 8),), (), 2),
    FamilyList((additive(2, 0, 1, 1, 1, 2, 1, at=mask_of((1, 2, 3, 5, 6, 7))),), (), 2),
)


@pytest.mark.parametrize(
    ("numa", "lists", "closest_first", "expected"),
    [
        pytest.param(
            info(range(4), {}),
            (
                FamilyList((additive(6, 1, 1, 4, 2),), (), 1),
                FamilyList((additive(6, 1, 1, 2, 4),), (), 1),
            ),
            False,
            TopologyHint(mask_of((0, 1)), False),
            id="1-two-lists-share-the-removal",
        ),
        pytest.param(PAIRS, TWO_TIGHT, False, TopologyHint(mask_of((3, 5)), True), id="2-one-bin"),
        pytest.param(
            PAIRS, TWO_TIGHT, True, TopologyHint(mask_of((6, 7)), True), id="2-one-bin-closest"
        ),
        pytest.param(
            info(range(8), {}),
            (
                FamilyList((additive(9, *(4,) * 8),), (), 3),
                FamilyList(
                    (additive(20, *(9,) * 6, at=mask_of((0, 1, 4, 5, 6, 7))),),
                    (TopologyHint(mask_of((2, 3)), False),),
                    2,
                ),
            ),
            False,
            TopologyHint(mask_of((0, 1, 4)), False),
            id="3-memory-group",
        ),
        pytest.param(
            info(range(8), {}),
            (
                FamilyList(
                    (
                        Piece(
                            FULL8,
                            thresholds=(
                                Threshold(
                                    2,
                                    (0,) * 8,
                                    (
                                        (mask_of((0, 1, 2, 3)), 1),
                                        (mask_of((4, 5, 6, 7)), 1),
                                    ),
                                ),
                            ),
                        ),
                    ),
                    (),
                    2,
                ),
            ),
            False,
            TopologyHint(mask_of((0, 4)), True),
            id="5-devices-on-several-nodes",
        ),
    ],
)
def test_worked_examples(
    numa: NumaInfo,
    lists: tuple[FamilyList, ...],
    closest_first: bool,
    expected: TopologyHint,
) -> None:
    made = World(numa, lists)

    assert made.merged(closest=closest_first).best == expected
    assert made.enumerated(closest=closest_first) == expected


def _always(*_: object, **__: object) -> bool:
    return True


def _below_limit(self: covers.Cover, so_far: float, *_: int) -> bool:
    return so_far < self.limit


def _dearer_bound(self: Rest, depth: int, count: int, near: list[int]) -> int:
    return _pairs(self, depth, count, near) + 2


def _wide_tree(side: twins.Side, depth: int) -> list[int]:
    """Pairs cost the widest step of all, as if that were on every way between them."""
    costs = _tree(side, depth)
    widest = max([step for row in side.between for step in row])
    return [cost + (count > 1) * widest for count, cost in enumerate(costs)]


def _dearer_jointly(self: JointBound, *given: Any) -> int:
    return _jointly(self, *given) + 1


def _all_worth(self: object, cover: covers.Cover, chosen: list[int]) -> float:
    """As if everything had been taken already."""
    return cover.limit


_jointly = JointBound.at
_pairs = Rest.by_pairs
_tree = twins._tree_costs
_settle = prices.Prices.settle


def _strict(self: prices.Prices, choice: Choice, work: object) -> object:
    """A no where the cheapest nodes come near the limit."""
    _, cost = self._cheapest(choice)
    return False if cost > 0.8 * self.total else _settle(self, choice, work)  # type: ignore[arg-type]  # stands in for a method


@pytest.mark.parametrize(
    ("where", "name", "fault"),
    [
        pytest.param(narrowest._Descent, "_is_dearer", _always, id="dominance-always-true"),
        pytest.param(Rest, "by_pairs", _dearer_bound, id="pairs-too-dear"),
        pytest.param(twins, "_tree_costs", _wide_tree, id="tree-of-the-widest-step"),
        pytest.param(JointBound, "at", _dearer_jointly, id="joint-bound-off-by-one"),
        pytest.param(closest._Search, "_taken_by", _all_worth, id="late-covers-too-full"),
        pytest.param(prices.Prices, "settle", _strict, id="price-bound-too-strict"),
        pytest.param(
            covers.Cover,
            "allows",
            _below_limit,
            id="cover-off-by-one",
        ),
        pytest.param(keep_search.KeepSearch, "_no_better", lambda *_: -1, id="nothing-is-better"),
        pytest.param(closest._Search, "_least_integer", lambda *_: 1 << 64, id="no-ties"),
        pytest.param(preferred, "_listed", lambda *_: set(), id="listed-masks-forgotten"),
    ],
)
def test_injected_faults_are_found(
    monkeypatch: pytest.MonkeyPatch, where: object, name: str, fault: object
) -> None:
    """With guesses switched off nothing hides a wrong bound."""
    monkeypatch.setattr(where, name, fault)

    for seed in range(3000):
        try:
            if differing(range(seed, seed + 1), 8, heuristics=False):
                return
        except (AssertionError, ValueError, IndexError, KeyError, Undecided):
            return
    pytest.fail("the fault was not found")


def test_listed_writes_out_what_is_described() -> None:
    family = FamilyList((Piece(mask_of((0, 1))),), (), 1)
    empty = FamilyList((Piece(mask_of((0,)), thresholds=(Threshold(1, (0,)),)),))

    assert listed([family, empty]) == [
        (
            TopologyHint(NumaMask(1), True),
            TopologyHint(NumaMask(2), True),
            TopologyHint(NumaMask(3), False),
        ),
        (TopologyHint(None, False),),
    ]
    assert merge(listed([family]), mask_of((0, 1)), by_integer) == TopologyHint(NumaMask(1), True)

"""Writing lists out, naming a few hints, and choosing the best: all against the full list."""

from __future__ import annotations

from random import Random

import pytest
from tests.unit.families.family_world import some, world

from numalign.families.best import best_described
from numalign.families.choices import offers_mask, preferred_choices, some_choices
from numalign.families.counts import fewest_nodes
from numalign.families.expand import expand, expanded, is_empty
from numalign.model.hint import FamilyList, Piece, SocketRule, Threshold, TopologyHint
from numalign.model.numa_mask import EMPTY, NumaMask, mask_of, narrowness, subsets

CASES = 150
NINE = tuple(range(9))


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        pytest.param(
            FamilyList((Piece(mask_of((0, 2, 3)), thresholds=(Threshold(2, (1, 1, 2)),)),), (), 1),
            [((3,), True), ((0, 2), False), ((0, 3), False), ((2, 3), False), ((0, 2, 3), False)],
            id="by-size-then-lexicographic",
        ),
        pytest.param(
            FamilyList(
                (Piece(mask_of((0, 1)), mask_of((1,))),),
                (
                    TopologyHint(None, False),
                    TopologyHint(mask_of((0, 1)), True),
                    TopologyHint(mask_of((5,)), False),
                ),
                1,
            ),
            [((1,), True), ((5,), False), ((0, 1), True), (None, False)],
            id="explicit-hints-join",
        ),
        pytest.param(
            FamilyList(
                (Piece(mask_of((0, 1, 2))),),
                (),
                1,
                SocketRule((mask_of((0, 1)), mask_of((2,))), 2),
            ),
            [
                ((0,), True),
                ((1,), True),
                ((2,), True),
                ((0, 1), False),
                ((0, 2), True),
                ((1, 2), True),
                ((0, 1, 2), True),
            ],
            id="socket-rule-is-another-way",
        ),
        pytest.param(
            FamilyList(
                (
                    Piece(
                        mask_of((0, 1, 2)),
                        thresholds=(Threshold(3, (0, 0, 1), ((mask_of((0, 1)), 2),)),),
                    ),
                )
            ),
            [((0, 2), False), ((1, 2), False), ((0, 1, 2), False)],
            id="group-counts-once",
        ),
    ],
)
def test_expand(family: FamilyList, expected: list[tuple[tuple[int, ...] | None, bool]]) -> None:
    assert expand(family) == tuple(
        TopologyHint(None if nodes is None else mask_of(nodes), preferred)
        for nodes, preferred in expected
    )


def test_expanded_keeps_every_absence() -> None:
    hints = {"a": None, "b": (), "c": FamilyList((Piece(mask_of((1,))),), (), 1)}

    assert expanded(None) is None
    assert expanded({}) == {}
    assert expanded(hints) == {"a": None, "b": (), "c": (TopologyHint(NumaMask(2), True),)}


def best_listed(hints: tuple[TopologyHint, ...], containing: NumaMask) -> TopologyHint | None:
    fitting = [h for h in hints if h.mask is not None and not containing & ~h.mask]
    return min(fitting, key=lambda h: (not h.preferred, narrowness(h.mask or EMPTY)), default=None)


def test_best_and_choices_are_those_of_the_list() -> None:
    for seed in range(CASES):
        random = Random(seed)
        for family in world(random, 7).lists:
            plain = FamilyList(family.pieces, family.explicit, family.preferred_count)
            listed = expand(plain)
            containing = some(random, NINE, 0.2)
            assert best_described(plain) == best_listed(listed, EMPTY), seed
            assert best_described(plain, containing) == best_listed(listed, containing), seed
            written = expand(family)
            named = some_choices(family, 1000)
            assert named.complete
            assert set(named.hints) == set(written), seed
            liked = preferred_choices(family, 1000)
            assert set(liked.hints) == {hint for hint in written if hint.preferred}, seed
            few = some_choices(family, 2)
            assert set(few.hints) <= set(written)
            assert few.complete == (len(written) <= 2), seed
            assert is_empty(family) == (not written)
            for mask in subsets(NINE[:5]):
                assert offers_mask(family, mask) == any(h.mask == mask for h in written), seed


def test_more_hints_than_can_be_named() -> None:
    everywhere = mask_of(range(64))
    family = FamilyList((Piece(everywhere),), (), 32)

    choices = preferred_choices(family, 3)

    assert not choices.complete
    assert [hint.preferred for hint in choices.hints] == [True] * 3
    assert all(h.mask is not None and h.mask.bit_count() == 32 for h in choices.hints)


def test_fewest_nodes_are_those_of_the_narrowest_member() -> None:
    for seed in range(CASES):
        for family in world(Random(seed), 7).lists:
            for piece in family.pieces:
                listed = expand(FamilyList((piece,)))
                sizes = [hint.mask.bit_count() for hint in listed if hint.mask is not None]
                assert fewest_nodes(piece) == min(sizes, default=None), seed

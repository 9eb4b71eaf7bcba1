"""Hints to their wire form and back: every kind of absence survives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.errors import InvalidInput
from numalign.model.hint import (
    FamilyList,
    HintList,
    Piece,
    ProviderHints,
    SocketRule,
    Threshold,
    TopologyHint,
)
from numalign.model.numa_mask import NumaMask
from numalign.provider.hint_messages import (
    hint_from_message,
    hint_to_message,
    hints_from_message,
    hints_to_message,
    list_from_message,
    list_to_message,
)
from numalign.v1 import types_pb2 as pb

MASKS = st.none() | st.integers(0, 2**64 - 1).map(NumaMask)
HINTS = st.builds(TopologyHint, MASKS, st.booleans())
AMOUNTS = st.integers(0, 2**64 - 1)
FILLED = st.integers(1, 2**64 - 1).map(NumaMask)


@st.composite
def pieces(draw: st.DrawFn) -> Piece:
    """Families over any nodes, whether a set can be in them or not."""
    ground = draw(FILLED)
    must = NumaMask(ground & draw(st.integers(0, 2**64 - 1)))
    weights = st.lists(AMOUNTS, min_size=ground.bit_count(), max_size=ground.bit_count())
    groups = st.lists(st.tuples(FILLED, AMOUNTS), max_size=2).map(tuple)
    threshold = st.builds(Threshold, AMOUNTS, weights.map(tuple), groups)
    return Piece(ground, must, draw(st.lists(threshold, max_size=2).map(tuple)))


FAMILIES = st.builds(
    FamilyList,
    st.lists(pieces(), min_size=1, max_size=2).map(tuple),
    st.lists(HINTS, max_size=3).map(tuple),
    st.none() | st.integers(0, 64),
    st.none() | st.builds(SocketRule, st.lists(FILLED, max_size=3).map(tuple), st.integers(0, 9)),
)
LISTS: st.SearchStrategy[HintList] = st.none() | st.lists(HINTS, max_size=5).map(tuple) | FAMILIES
MAPS: st.SearchStrategy[ProviderHints] = st.none() | st.dictionaries(st.text(), LISTS, max_size=3)


@given(hint=HINTS)
def test_a_hint_comes_back(hint: TopologyHint) -> None:
    wire = hint_to_message(hint).SerializeToString()
    assert hint_from_message(pb.Hint.FromString(wire)) == hint


@given(hints=LISTS)
def test_a_list_comes_back(hints: HintList) -> None:
    wire = list_to_message(hints).SerializeToString()
    assert list_from_message(pb.HintList.FromString(wire), "hints") == hints


@given(hints=MAPS)
def test_a_mapping_comes_back(hints: ProviderHints) -> None:
    message = hints_to_message(hints)
    if message is None:
        assert hints is None
    else:
        wire = pb.HintMap.FromString(message.SerializeToString())
        assert hints_from_message(wire) == hints


@pytest.mark.parametrize(
    ("message", "field"),
    [
        pytest.param(pb.HintList(), "hints.kind", id="kind-not-said"),
        pytest.param(pb.HintList(kind=pb.HintList.KIND_HINTS), "hints.masks", id="no-hint"),
        pytest.param(
            pb.HintList(kind=pb.HintList.KIND_HINTS, masks=[1, 2], preferred=[True]),
            "hints",
            id="short-preferred",
        ),
        pytest.param(
            pb.HintList(
                kind=pb.HintList.KIND_HINTS,
                masks=[1, 2],
                preferred=[True, False],
                has_affinity=[True],
            ),
            "hints",
            id="short-has-affinity",
        ),
    ],
)
def test_a_wrong_list_is_named(message: pb.HintList, field: str) -> None:
    with pytest.raises(InvalidInput) as wrong:
        list_from_message(message, "hints")
    assert [violation.field for violation in wrong.value.violations] == [field]


def described(**piece: object) -> pb.HintList:
    """A list with one family."""
    message = pb.HintList(kind=pb.HintList.KIND_HINTS)
    message.pieces.add(**piece)
    return message


@pytest.mark.parametrize(
    ("message", "field"),
    [
        pytest.param(described(ground=1, must=2), "hints.pieces[0].must", id="must-outside"),
        pytest.param(
            described(ground=3, thresholds=[pb.Threshold(need=1, weights=[1])]),
            "hints.pieces[0].thresholds[0].weights",
            id="short-weights",
        ),
        pytest.param(
            described(ground=3, thresholds=[pb.Threshold(need=1, weights=[1, 1], group_masks=[3])]),
            "hints.pieces[0].thresholds[0]",
            id="short-group-weights",
        ),
    ],
)
def test_a_wrong_family_is_named(message: pb.HintList, field: str) -> None:
    with pytest.raises(InvalidInput) as wrong:
        list_from_message(message, "hints")
    assert [violation.field for violation in wrong.value.violations] == [field]


def test_a_family_without_pieces_is_a_plain_list() -> None:
    explicit = (TopologyHint(NumaMask(1), True),)

    assert list_to_message(FamilyList((), explicit)) == list_to_message(explicit)
    assert list_to_message(FamilyList(())) == list_to_message(())

"""Hints to their wire form and back: every kind of absence survives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.errors import InvalidInput
from numalign.model.hint import HintList, ProviderHints, TopologyHint
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
LISTS: st.SearchStrategy[HintList] = st.none() | st.lists(HINTS, max_size=5).map(tuple)
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

"""What providers have forgotten is not given to another pod."""

from __future__ import annotations

import pytest

from numalign.errors import Unavailable
from numalign.model.ids import PodUid
from numalign.topology.lost_parts import LostParts

A, B = PodUid("a"), PodUid("b")
ONE, TWO = ("example.com/x", "one"), ("example.com/x", "two")


@pytest.fixture
def lost() -> LostParts:
    lost = LostParts()
    lost.note("x", {ONE: A})
    return lost


def test_another_pod_is_refused_and_told_why(lost: LostParts) -> None:
    with pytest.raises(
        Unavailable,
        match=r'hint provider x: gave example.com/x "one", which it gave pod "a" before',
    ):
        lost.refuse("x", B, [TWO, ONE])


def test_the_holder_other_parts_and_other_providers_are_not(lost: LostParts) -> None:
    lost.refuse("x", A, [ONE])
    lost.refuse("x", B, [TWO])
    lost.refuse("y", B, [ONE])


def test_what_was_released_or_is_known_again_may_be_given(lost: LostParts) -> None:
    lost.released([A])
    lost.refuse("x", B, [ONE])
    lost.note("x", {ONE: A, TWO: B})
    lost.note("x", {TWO: B})
    lost.refuse("x", B, [ONE])

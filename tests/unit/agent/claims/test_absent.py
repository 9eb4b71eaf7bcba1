"""How long drivers may be away before what they offer is gone."""

from __future__ import annotations

from numalign_agent.claims.absent import AWAY_SECONDS, AbsentDrivers


def test_a_driver_that_went_is_gone_after_a_while() -> None:
    known = AbsentDrivers().looked({"a", "b"}, 0).looked({"b"}, 10)

    assert known.gone(10 + AWAY_SECONDS - 1) == set()
    assert known.gone(10 + AWAY_SECONDS) == {"a"}


def test_the_first_moment_counts_and_whoever_comes_back_is_not_gone() -> None:
    known = AbsentDrivers().looked({"a"}, 0).looked(set(), 10).looked(set(), 20)
    assert known.gone(10 + AWAY_SECONDS) == {"a"}

    back = known.looked({"a"}, 30)
    assert back.gone(1000) == set()
    assert back.looked(set(), 100).gone(100 + AWAY_SECONDS) == {"a"}


def test_who_never_came_is_gone_once_after_the_start() -> None:
    known = AbsentDrivers()
    assert not known.all_are_gone(1000)

    looked = known.looked(set(), 5).looked({"late"}, 20)
    assert not looked.all_are_gone(5 + AWAY_SECONDS - 1)
    assert looked.all_are_gone(5 + AWAY_SECONDS)
    assert not looked.wiped((), all_=True).all_are_gone(1000)
    assert looked.wiped((), all_=False).all_are_gone(1000)


def test_what_is_deleted_is_not_deleted_again() -> None:
    known = AbsentDrivers().looked({"a", "b"}, 0).looked(set(), 0)

    assert known.wiped({"a"}, all_=False).gone(AWAY_SECONDS) == {"b"}

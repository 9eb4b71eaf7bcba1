"""Who is moved when CPUs change hands."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from numalign.model.cpu_set import CpuSet
from numalign_agent.placements.pool import NOTHING_KEPT_APART, CpuPool, Given, Member
from numalign_agent.runners.port import Placement


def cpus(pool: CpuPool) -> dict[str, str]:
    return {container: placement.cpus for container, placement in pool.moves().items()}


def follower(on: str = "", uid: str = "f") -> Member:
    return Member(uid, "c", applied=Placement(cpus=on))


def owner(own: str, uid: str = "e") -> Member:
    return Member(
        uid, "c", own=own, exclusive=True, applied=Placement(cpus=own, exclusive_cpus=True)
    )


def test_nothing_moves_where_nothing_is_kept_apart() -> None:
    assert cpus(NOTHING_KEPT_APART.with_member("a", follower("0-3"))) == {}


def test_containers_follow_the_shared_cpus() -> None:
    pool = NOTHING_KEPT_APART.with_member("a", follower("0-7")).heard("0-3")

    assert cpus(pool) == {"a": "0-3"}
    assert cpus(pool.with_member("a", follower("0-3"))) == {}


def test_exclusive_cpus_are_left_before_admission_says_that_they_are_not_shared() -> None:
    pool = NOTHING_KEPT_APART.heard("0-7").with_member("a", follower("0-7"))

    assert cpus(pool.with_member("x", owner("2-3"))) == {"a": "0-1,4-7"}


def test_they_are_shared_again_when_their_owner_has_ended() -> None:
    pool = NOTHING_KEPT_APART.heard("0-7").with_member("x", owner("2-3"))
    pool = pool.with_member("a", follower("0-1,4-7")).without(["x"])

    assert cpus(pool) == {"a": "0-7"}


def test_where_no_cpu_is_left_nobody_is_moved() -> None:
    pool = NOTHING_KEPT_APART.heard("2-3").with_member("a", follower("2-3"))

    assert cpus(pool.with_member("x", owner("2-3"))) == {}


def test_what_was_given_before_a_restart_is_applied_again() -> None:
    pool = NOTHING_KEPT_APART.heard("0-1,4-7").with_member("x", Member("e", "c"))
    pool = pool.with_member("a", Member("f", "c"))
    pool = pool.with_given("e", Given({"c": "2-3"})).with_given("f", Given({"c": ""}))

    assert pool.moves() == {
        "x": Placement(cpus="2-3", exclusive_cpus=True),
        "a": Placement(cpus="0-1,4-7"),
    }


def test_a_container_of_a_pod_with_cpus_of_its_own_stays_among_them() -> None:
    given = Given({"main": "4-5", "side": ""}, pod_cpus="4-7")
    pool = NOTHING_KEPT_APART.heard("0-3").with_member("s", Member("p", "side"))

    assert cpus(pool.with_given("p", given)) == {"s": "6-7"}


def test_what_was_given_is_forgotten_with_the_last_container() -> None:
    pool = NOTHING_KEPT_APART.with_given("p", Given({"c": "1"}))
    pool = pool.with_member("a", Member("p", "c")).with_member("b", Member("p", "c"))

    assert set(pool.without(["a"]).given) == {"p"}
    assert pool.without(["a", "b"]).given == {}


@given(
    said=st.sets(st.integers(0, 15), min_size=1),
    owned=st.lists(st.sets(st.integers(0, 15), min_size=1, max_size=3), max_size=4),
)
def test_no_follower_is_sent_to_somebody_elses_cpus(said: set[int], owned: list[set[int]]) -> None:
    pool = NOTHING_KEPT_APART.with_member("f", follower("99")).heard(str(CpuSet.of(said)))
    for number, mine in enumerate(owned):
        pool = pool.with_member(f"x{number}", owner(str(CpuSet.of(mine)), f"e{number}"))
    target = pool.moves().get("f")
    taken = set().union(*owned) if owned else set()

    assert (target is None) == (not said - taken)
    if target is not None:
        assert set(CpuSet.parse(target.cpus)) == said - taken

"""What a pod asks for and does not hold."""

from __future__ import annotations

from tests.unit.cpu.cpu_machines import PLRM, T8, allocate_whole, engine, place, pod

from numalign.provider.engine import Lost

NOTHING: frozenset[str] = frozenset()


def test_a_pod_that_came_before_the_policy_is_named_and_a_finished_init_container_not() -> None:
    by = engine(T8)
    one = pod("p", {"a": "2", "shared": "500m"}, {"i": "1"})

    assert by.missing(by.start(None).state, one, frozenset({"i"})) == (
        Lost(container="a", message="not pinned: asks for 2 exclusive CPUs, has none"),
    )


def test_nothing_is_missing_of_what_was_placed_or_under_no_policy() -> None:
    by, none = engine(T8), engine(T8, "", policy="none")
    one = pod("p", {"a": "2"}, {"i": "1"})

    assert by.missing(place(by, by.start(None).state, one), one, NOTHING) == ()
    assert none.missing(none.start(None).state, one, NOTHING) == ()


def test_another_number_is_another_pod() -> None:
    by = engine(T8)
    state = place(by, by.start(None).state, pod("p", {"a": "2"}))
    (lost,) = by.missing(state, pod("p", {"a": "3"}), NOTHING)

    assert lost.differs
    assert lost.message.endswith("asks for 3")


def test_a_pod_managed_as_a_whole_is_compared_as_a_whole() -> None:
    by = engine(T8, gates=PLRM)
    one = pod("p", {"a": "2"}, pod_cpu="3")
    state = by.start(None).state

    assert [lost.container for lost in by.missing(state, one, NOTHING)] == [""]
    assert by.missing(allocate_whole(by, state, one).state, one, NOTHING) == ()

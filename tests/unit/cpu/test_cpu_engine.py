"""The engine as ledger and servicer use it."""

from __future__ import annotations

import asyncio

from tests.unit.cpu.cpu_machines import (
    PLRM,
    T8,
    T16,
    allocate,
    allocate_whole,
    engine,
    hint,
    hints,
    machine,
    place,
    pod,
    single,
)

from numalign.cpu.hints import MAX_LISTED_NODES
from numalign.cpu.state import CpuState
from numalign.model.hint import FamilyList, Piece, Threshold
from numalign.model.ids import PodUid
from numalign.model.numa_mask import NumaMask
from numalign.provider.engine import Engine, Sources

P = PodUid("p")


def test_engine_fits_the_protocol() -> None:
    by: Engine[CpuState] = engine(T8)

    assert by.name == "cpu"
    assert by.resources() == ("cpu",)


def test_policy_none_does_nothing() -> None:
    by = engine(T8, "", policy="none")
    state = by.start(None).state
    which = pod("p", {"a": "2"})

    assert by.resources() == ()
    assert hints(by, state, which, "a") is None
    assert hints(by, state, which) is None
    assert allocate(by, state, which, "a", hint(0)).state == state
    assert allocate_whole(by, state, which, hint(0)).state == state
    assert by.facts(state, which, None) == ()
    prepared = asyncio.run(by.prepare_container(state, which, which.container("a")))
    assert prepared[1].cpus is None


def test_what_is_held_and_applied() -> None:
    by = engine(T8)
    which = pod("p", {"b": "2", "a": "1", "s": "500m"})
    state = place(by, by.start(None).state, which)

    assert by.pods(state) == {P}
    assert [(h.container, str(h.cpus)) for h in by.holdings(state, P)] == [("a", "4"), ("b", "1,5")]
    assert by.holdings(state, PodUid("q")) == ()
    assert str(by.shared_cpus(state)) == "0,2-3,6-7"
    applied = {
        c.name: str(asyncio.run(by.prepare_container(state, which, c))[1].cpus)
        for c in which.containers
    }
    assert applied == {"b": "1,5", "a": "4", "s": "0,2-3,6-7"}
    assert asyncio.run(by.seal(state, which)).state == state


def test_empty_shared_set_is_not_applied() -> None:
    by = engine(T8, "0", "strict-cpu-reservation")
    which = pod("p", {"a": "7", "s": None})
    state = place(by, by.start(None).state, which)

    _, prepared = asyncio.run(by.prepare_container(state, which, which.container("s")))

    assert prepared.cpus is None


def test_every_call_cleans_up_first() -> None:
    by = engine(T8)
    state = place(by, by.start(None).state, pod("gone", {"a": "7"}))
    which = pod("p", {"a": "2"})
    active = Sources(active={P: frozenset({"a"})})
    each = which.container("a")

    assert hints(by, state, which, "a") == {"cpu": ()}
    assert by.topology_hints(state, which, each, active).hints == {"cpu": (hint(0),)}
    assert by.pod_topology_hints(state, which, active).state.assignments == {}
    assert allocate(by, state, which, "a").failure is not None
    assert allocate(by, state, which, "a", sources=active).failure is None


def test_release_gives_each_cpu_back_once() -> None:
    by = engine(T8, gates=PLRM)
    fresh = by.start(None).state
    reusing = place(by, fresh, pod("p", {"a": "2"}, {"i": "3"}))
    assert by.release(reusing, P) == fresh
    whole = allocate_whole(by, fresh, pod("p", {"a": "2", "s": None}, pod_cpu="4")).state
    assert by.release(whole, P) == fresh
    assert by.release(fresh, P) == fresh


def test_release_leaves_what_another_pod_holds() -> None:
    by = engine(T8)
    state = place(by, by.start(None).state, pod("p", {"a": "2"}))
    doubly = state.with_assignment(PodUid("q"), "a", state.cpus_of(P, "a"))

    assert by.release(doubly, P).default == state.default
    assert by.release(by.release(doubly, P), PodUid("q")).default == by.start(None).state.default


def test_decisions_do_not_change_the_state_they_are_given() -> None:
    by = engine(T16)
    before = place(by, by.start(None).state, pod("q", {"a": "2"}))
    copy = by.encode(before)

    place(by, before, pod("p", {"a": "4"}, {"i": "2"}), hint(1))
    by.release(before, PodUid("q"))
    by.remove_stale(before, Sources(active={}))

    assert by.encode(before) == copy


def test_hints_over_many_nodes_are_described() -> None:
    where = machine({n: single(range(n, n + 1)) for n in range(MAX_LISTED_NODES + 1)})
    by = engine(where)
    state = by.start(None).state

    given = hints(by, state, pod("p", {"a": "2"}), "a")

    assert given is not None
    assert given["cpu"] == FamilyList(
        pieces=(Piece(NumaMask(0b111111111), thresholds=(Threshold(2, (0,) + (1,) * 8),)),),
        preferred_count=2,
    )
    assert hints(by, state, pod("p", {"a": "9"}), "a") == {"cpu": ()}
    assert allocate(by, state, pod("p", {"a": "1"}), "a").failure is None


def test_container_with_an_affinity_for_an_unknown_node() -> None:
    by = engine(T16)

    state = place(by, by.start(None).state, pod("p", {"a": "2"}), hint(5))

    assert str(state.cpus_of(P, "a")) == "1,9"


def test_pod_that_cannot_be_cut_up_keeps_its_cpus() -> None:
    by = engine(T8, gates=PLRM)
    too_much = pod("p", {"a": "2", "b": "2"}, pod_cpu="3")

    outcome = allocate_whole(by, by.start(None).state, too_much)

    assert outcome.failure is not None
    assert outcome.failure.message == (
        "not enough cpus available to satisfy request: requested=2, available=1"
    )
    assert str(outcome.state.pod_sets[P]) == "1,4-5"
    assert outcome.state.assignments == {}
    assert str(outcome.state.default) == "0,2-3,6-7"

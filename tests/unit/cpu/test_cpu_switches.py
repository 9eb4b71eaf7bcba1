"""Switches beyond the kubelet's placement: what each one changes, and that nothing else does."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.unit.cpu.cpu_machines import (
    GATES,
    PLRM,
    T8,
    T16,
    TWO_OF_4,
    allocate,
    allocate_whole,
    engine,
    held,
    hint,
    hints,
    place,
    pod,
)
from tests.unit.cpu.test_cpu_invariants import machines

from numalign.cpu.eligibility import pod_count
from numalign.cpu.engine import CpuEngine
from numalign.cpu.state import union
from numalign.cpu.static_setup import EMPTY_SHARED_POOL_ERROR
from numalign.cpu.strategies import SAFE
from numalign.model.hint import NO_HINT, TopologyHint
from numalign.model.machine import Machine
from numalign.model.settings import CpuSwitches

KEEP = CpuSwitches(keep_shared=True)
REUSE = CpuSwitches(reuse_init=True)
STRICT = "strict-cpu-reservation"


@pytest.mark.parametrize(
    ("by", "count", "refused"),
    [
        pytest.param(engine(T8, "0", STRICT, switches=KEEP), 7, True, id="all-of-them"),
        pytest.param(engine(T8, "0", STRICT, switches=KEEP), 6, False, id="all-but-one"),
        pytest.param(engine(T8, "0", STRICT), 7, False, id="off"),
        pytest.param(engine(T8, "0", switches=KEEP), 7, False, id="reserved-are-shared"),
    ],
)
def test_one_cpu_stays_shared(by: CpuEngine, count: int, refused: bool) -> None:
    state = by.start(None).state
    outcome = allocate(by, state, pod("p", {"a": str(count)}), "a")

    if refused:
        assert outcome.failure is not None
        assert outcome.failure.reason == EMPTY_SHARED_POOL_ERROR
        assert "all 7 shared CPUs are asked for" in outcome.failure.message
        assert outcome.state == state
    else:
        assert outcome.failure is None


def test_a_pod_with_resources_of_its_own_leaves_one_shared() -> None:
    by = engine(T8, "0", STRICT, switches=KEEP, gates=PLRM)
    state = by.start(None).state

    refused = allocate_whole(by, state, pod("p", {"a": "2", "s": None}, pod_cpu="7"))
    admitted = allocate_whole(by, state, pod("p", {"a": "2", "s": None}, pod_cpu="6"))

    assert refused.failure is not None
    assert refused.failure.reason == EMPTY_SHARED_POOL_ERROR
    assert refused.state == state
    assert admitted.failure is None


def test_init_containers_that_leave_nothing_new_to_take_pass() -> None:
    by = engine(T8, "0", STRICT, switches=KEEP)

    state = place(by, by.start(None).state, pod("p", {"a": "6"}, {"i": "6"}))

    assert held(state, "p")["a"] == held(state, "p")["i"]
    assert len(state.default) == 1


def test_a_container_that_holds_the_last_ones_keeps_them() -> None:
    before = engine(T8, "0", STRICT)
    whole = pod("p", {"a": "7"})
    state = place(before, before.start(None).state, whole)

    again = allocate(engine(T8, "0", STRICT, switches=KEEP), state, whole, "a")

    assert again.failure is None
    assert again.state.assignments == state.assignments


@pytest.mark.parametrize(
    ("by", "init", "app", "affinity", "expected"),
    [
        pytest.param(engine(T8, switches=REUSE), 1, 4, NO_HINT, "1-2,4-5", id="first"),
        pytest.param(engine(T8), 1, 4, NO_HINT, "1-2,5-6", id="off"),
        pytest.param(engine(T8, switches=REUSE), 3, 2, NO_HINT, "1,5", id="part-of-it"),
        pytest.param(
            engine(TWO_OF_4, switches=REUSE), 1, 2, hint(1), "4-5", id="near-before-left-over"
        ),
        pytest.param(
            engine(TWO_OF_4, switches=REUSE), 1, 5, hint(1), "1,4-7", id="left-over-before-far"
        ),
        pytest.param(
            engine(TWO_OF_4, switches=REUSE), 1, 2, hint(0), "1-2", id="near-and-left-over"
        ),
    ],
)
def test_what_init_containers_left_comes_first(
    by: CpuEngine, init: int, app: int, affinity: TopologyHint, expected: str
) -> None:
    which = pod("p", {"a": str(app)}, {"i": str(init)})
    state = allocate(by, by.start(None).state, which, "i").state

    outcome = allocate(by, state, which, "a", affinity)

    assert outcome.failure is None
    assert held(outcome.state, "p")["a"] == expected


@pytest.mark.parametrize(("switches", "fits"), [(REUSE, True), (CpuSwitches(), False)])
def test_whole_cores_of_init_containers_count(switches: CpuSwitches, fits: bool) -> None:
    by = engine(T8, "0,4", "full-pcpus-only", switches=switches)
    which = pod("p", {"a": "6"}, {"i": "4"})
    state = allocate(by, by.start(None).state, which, "i").state

    failure = allocate(by, state, which, "a").failure

    assert (failure is None) is fits
    (facts,) = by.facts(state, which, which.container("a"))
    assert f"{6 if fits else 2} are free on whole cores" in facts.note


def test_hints_are_as_without_the_switch() -> None:
    which = pod("p", {"a": "4"}, {"i": "2"})
    on, off = engine(T16, switches=REUSE), engine(T16)
    state = allocate(off, off.start(None).state, which, "i").state

    assert hints(on, state, which, "a") == hints(off, state, which, "a")
    assert hints(on, state, which) == hints(off, state, which)


@given(
    where=machines(),
    option=st.sampled_from(
        ((), ("distribute-cpus-across-numa",), ("prefer-align-cpus-by-uncorecache",))
    ),
    init=st.dictionaries(st.sampled_from("ijkl"), st.integers(1, 5).map(str), max_size=4),
    apps=st.dictionaries(st.sampled_from("abc"), st.integers(1, 4).map(str), min_size=1),
    sidecars=st.frozensets(st.sampled_from("ijkl")),
)
@settings(deadline=None)
def test_a_pod_holds_what_it_needs_at_one_time(
    where: Machine,
    option: tuple[str, ...],
    init: dict[str, str],
    apps: dict[str, str],
    sidecars: frozenset[str],
) -> None:
    by = engine(where, "0", *option, strategies=SAFE, switches=REUSE)
    which = pod("p", apps, init, sidecars)
    state = by.start(None).state
    needed = pod_count(which, GATES)
    assume(needed < len(by.all_cpus))

    after = place(by, state, which)

    taken = union(after.assignments[which.uid])
    assert len(taken) == needed
    assert state.default - after.default == taken
    lasting = [c for c in which.all_containers() if not c.is_regular_init]
    assert sum(len(after.cpus_of(which.uid, c.name)) for c in lasting) == len(
        union({c.name: after.cpus_of(which.uid, c.name) for c in lasting})
    )

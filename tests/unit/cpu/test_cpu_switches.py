"""Switches beyond the kubelet's placement: what each one changes, and that nothing else does."""

from __future__ import annotations

import pytest
from tests.unit.cpu.cpu_machines import (
    PLRM,
    T8,
    allocate,
    allocate_whole,
    engine,
    held,
    place,
    pod,
)

from numalign.cpu.engine import CpuEngine
from numalign.cpu.static_setup import EMPTY_SHARED_POOL_ERROR
from numalign.model.settings import CpuSwitches

KEEP = CpuSwitches(keep_shared=True)
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

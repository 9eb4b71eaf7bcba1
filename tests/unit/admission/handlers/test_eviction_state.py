"""Node conditions over time."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.admission.handlers.eviction_signals import (
    FsStats,
    MemoryStats,
    NodeStats,
    Observation,
    observations,
)
from numalign.admission.handlers.eviction_state import (
    EvictionState,
    evaluate,
    thresholds_met,
)
from numalign.admission.handlers.eviction_thresholds import EvictionOptions, parse_thresholds
from numalign.model.quantity import Quantity

_MIB = 1 << 20


def _memory(available: int) -> dict[str, Observation]:
    return observations(
        NodeStats(memory=MemoryStats(available=available, working_set=1000 * _MIB - available))
    )


def _state(**options: Any) -> EvictionState:
    return EvictionState(thresholds=parse_thresholds(EvictionOptions(**options)))


def _after(state: EvictionState, available: int | None, now: float) -> EvictionState:
    return evaluate(
        state,
        None if available is None else _memory(available),
        now,
        transition_period=300,
        dedicated_image_fs=False,
        split_container_fs=False,
    )


def test_equal_is_not_met() -> None:
    """EVI-10, trap 7."""
    state = _state(hard={"memory.available": "100Mi"})

    assert _after(state, 100 * _MIB, 0).conditions == ()
    assert _after(state, 100 * _MIB - 1, 0).conditions == ("MemoryPressure",)


def test_percentages_are_32_bit_floats() -> None:
    """EVI-10, trap 8."""
    thresholds = parse_thresholds(EvictionOptions(hard={"nodefs.available": "10%"}))

    def met(available: int) -> bool:
        stats = NodeStats(node_fs=FsStats(available=available, capacity=10**12))
        return bool(thresholds_met(thresholds, observations(stats)))

    assert met(100_000_001_489)
    assert not met(100_000_001_490)


def test_a_soft_threshold_raises_its_condition_at_once() -> None:
    """EVI-11, trap 6."""
    state = _state(soft={"memory.available": "1Gi"}, soft_grace_period={"memory.available": "1h"})
    state = _after(state, 900 * _MIB, 0)

    assert state.conditions == ("MemoryPressure",)
    assert state.met == ()


def test_a_condition_outlives_its_cause() -> None:
    """EVI-12, trap 9."""
    state = _after(_state(hard={"memory.available": "100Mi"}), 10 * _MIB, 0)

    assert _after(state, 900 * _MIB, 299).conditions == ("MemoryPressure",)
    assert _after(state, 900 * _MIB, 300).conditions == ()


def test_minimum_reclaim_holds_what_was_met() -> None:
    """EVI-11."""
    state = _state(
        hard={"memory.available": "100Mi"}, minimum_reclaim={"memory.available": "200Mi"}
    )
    state = _after(state, 50 * _MIB, 0)

    assert [t.signal for t in _after(state, 250 * _MIB, 10).met] == ["memory.available"]
    assert _after(state, 300 * _MIB, 10).met == ()


def test_nothing_is_known_before_stats_can_be_read() -> None:
    """EVI-13: without a summary the conditions stand."""
    state = _after(_state(hard={"memory.available": "100Mi"}), 10 * _MIB, 0)

    assert _after(state, None, 1000).conditions == ("MemoryPressure",)


def test_what_is_unknown_is_not_observed() -> None:
    """EVI-8."""
    stats = NodeStats(
        memory=MemoryStats(available=1),
        node_fs=FsStats(available=1, capacity=2, inodes=3),
        max_pid=10,
        processes=4,
    )

    assert observations(stats) == {
        "nodefs.available": Observation(Quantity.from_int(1), Quantity.from_int(2)),
        "pid.available": Observation(Quantity.from_int(6), Quantity.from_int(10)),
    }


@settings(deadline=None)
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=12), st.integers(1, 60))
def test_a_condition_is_there_iff_it_was_seen_within_the_period(
    available: list[int], step: int
) -> None:
    """EVI-12 for a hard threshold without minimum reclaim."""
    state = _state(hard={"memory.available": "100Mi"})
    seen: float | None = None
    for turn, amount in enumerate(available):
        now = turn * step
        state = _after(state, amount * _MIB, now)
        if amount < 100:
            seen = now

        assert bool(state.conditions) is (seen is not None and now - seen < 300)

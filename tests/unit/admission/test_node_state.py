"""What the service knows of its node, as it is told and measured."""

from __future__ import annotations

import asyncio

from tests.unit.admission.handlers.admit_pods import node

from numalign.admission.handlers.eviction_signals import MemoryStats, NodeStats
from numalign.admission.handlers.eviction_thresholds import EvictionOptions, parse_thresholds
from numalign.admission.node_state import NodeState

_LOW = NodeStats(memory=MemoryStats(available=1, working_set=99))
_FINE = NodeStats(memory=MemoryStats(available=1 << 30, working_set=99))


class Clock:
    """A clock that stands until it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def _state(clock: Clock, stats: NodeStats = _FINE) -> NodeState:
    thresholds = parse_thresholds(EvictionOptions(hard={"memory.available": "100Mi"}))
    return NodeState(thresholds, 300, lambda: stats, clock, dedicated_image_fs=False)


def test_a_node_is_known_once_it_was_told() -> None:
    state, untold = _state(Clock()), _state(Clock())
    state.set_node(node(), b"")
    state.set_shutting_down(True)

    assert not untold.is_known
    assert state.is_known
    assert state.facts().node == node()
    assert state.facts().shutting_down


def test_pressure_is_sticky() -> None:
    """EVI-12; what was told about the node stays."""
    clock = Clock()
    state = _state(clock)
    state.set_node(node(), b"")
    state.measured(_LOW)
    assert state.facts().conditions == ("MemoryPressure",)

    clock.now = 299
    state.measured(_FINE)
    assert state.facts().conditions == ("MemoryPressure",)

    clock.now = 300
    state.measured(_FINE)
    assert state.facts().conditions == ()
    assert state.facts().node == node()


async def test_it_measures_from_start_to_close() -> None:
    """EVI-13: no pressure before the first measurement."""
    state = _state(Clock(), _LOW)
    assert state.facts().conditions == ()

    state.start()
    state.start()
    async with asyncio.timeout(5):
        while not state.facts().conditions:  # noqa: ASYNC110 - no event says it
            await asyncio.sleep(0.001)
    await state.close()

    assert state.facts().conditions == ("MemoryPressure",)

"""What the service knows of its node, as it is told and measured."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.admission.handlers.admit_pods import node

from numalign.admission.handlers.eviction_signals import MemoryStats, NodeStats
from numalign.admission.handlers.eviction_thresholds import EvictionOptions, parse_thresholds
from numalign.admission.node_file import KnownNode, NodeFile
from numalign.admission.node_state import NodeState, Pressure
from numalign.errors import ConfigError

_LOW = NodeStats(memory=MemoryStats(available=1, working_set=99))
_FINE = NodeStats(memory=MemoryStats(available=1 << 30, working_set=99))


class Clock:
    """A clock that stands until it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def _state(clock: Clock, stats: NodeStats = _FINE) -> NodeState:
    return NodeState(_pressure("100Mi", stats), clock)


def _pressure(threshold: str, stats: NodeStats = _FINE) -> Pressure:
    return Pressure(
        thresholds=parse_thresholds(EvictionOptions(hard={"memory.available": threshold})),
        transition_period=300,
        read_stats=lambda: stats,
        dedicated_image_fs=False,
    )


def test_a_node_is_known_once_it_was_told() -> None:
    state, untold = _state(Clock()), _state(Clock())
    state.set_node(KnownNode(node(), b"node"))
    state.set_shutting_down(True)

    assert not untold.is_known
    assert state.is_known
    assert state.facts().node == node()
    assert state.facts().shutting_down
    assert (state.node_bytes, untold.node_bytes) == (b"node", b"")


def test_pressure_is_sticky() -> None:
    """EVI-12; what was told about the node stays."""
    clock = Clock()
    state = _state(clock)
    state.set_node(KnownNode(node(), b"node"))
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
    async with asyncio.timeout(60):
        while not state.facts().conditions:  # noqa: ASYNC110 - no event says it
            await asyncio.sleep(0.001)
    await state.close()

    assert state.facts().conditions == ("MemoryPressure",)


def test_the_shutdown_holds_while_any_source_says_so() -> None:
    """SHUT-3."""
    state = _state(Clock())
    told = []
    for shutting_down, source in ((True, "a"), (True, "b"), (False, "a"), (False, "b")):
        state.set_shutting_down(shutting_down, source)
        told.append(state.facts().shutting_down)

    assert told == [True, True, True, False]


def test_other_thresholds_from_the_next_measurement_on() -> None:
    """EVI-12: a condition lasts as long as it was to."""
    clock = Clock()
    state = _state(clock)
    state.measured(_FINE)
    state.change(_pressure("2Gi"))
    state.measured(_FINE)
    pressed = state.facts().conditions
    state.change(_pressure("100Mi"))
    clock.now = 299
    state.measured(_FINE)
    still = state.facts().conditions
    clock.now = 300
    state.measured(_FINE)

    assert (pressed, still, state.facts().conditions) == (
        ("MemoryPressure",),
        ("MemoryPressure",),
        (),
    )


async def test_what_cannot_be_measured_ends_nothing() -> None:
    looks = 0

    def read_stats() -> NodeStats:
        nonlocal looks
        looks += 1
        raise PermissionError("/proc/meminfo")

    state = NodeState(replace(_pressure("1Gi"), read_stats=read_stats), Clock())
    state.start()
    async with asyncio.timeout(60):
        while not looks:  # noqa: ASYNC110 - no event says it
            await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)
    assert state._measuring is not None
    assert not state._measuring.done()
    await state.close()


def _written(path: Path, zone: str) -> None:
    path.write_text(f"metadata: {{name: node-1, labels: {{zone: {zone}}}}}", encoding="utf-8")


def _zone(state: NodeState) -> str | None:
    view = state.facts().node
    return None if view is None else view.labels.get("zone")


def test_a_file_is_read_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "node.yaml"
    _written(path, "a")
    state = NodeState(_pressure("1Gi"), Clock(), NodeFile(path))
    seen = [_zone(state)]
    _written(path, "beta")
    seen.append(_zone(state))
    path.write_text("- no node")
    seen.append(_zone(state))
    path.unlink()
    seen.append(_zone(state))
    _written(path, "c")
    seen.append(_zone(state))

    assert seen == ["a", "beta", "beta", "beta", "c"]
    assert b"node-1" in state.node_bytes


def test_a_file_is_read_anew_for_who_asks(tmp_path: Path) -> None:
    """PRED-10: what cannot be read changes nothing."""
    path = tmp_path / "node.yaml"
    _written(path, "a")
    state = NodeState(_pressure("1Gi"), Clock(), NodeFile(path))
    fresh_node = state.facts().fresh_node
    assert fresh_node is not None
    _written(path, "b")
    read = fresh_node()
    path.unlink()

    assert read is not None
    assert read.labels == {"zone": "b"}
    assert fresh_node() is None


def test_a_call_counts_more_than_a_file(tmp_path: Path) -> None:
    path = tmp_path / "node.yaml"
    _written(path, "a")
    state = NodeState(_pressure("1Gi"), Clock(), NodeFile(path))
    state.set_node(KnownNode(node(), b""))
    _written(path, "b")

    assert state.facts().node == node()
    assert state.facts().fresh_node is None


@pytest.mark.parametrize(
    "text",
    ["- list", "kind: Pod", "metadata: {}", "status: {allocatable: {cpu: x}}", "a: ["],
)
def test_a_file_that_is_no_node_cannot_be_used(tmp_path: Path, text: str) -> None:
    path = tmp_path / "node.yaml"
    path.write_text(text)

    with pytest.raises(ConfigError, match=r"node\.yaml"):
        NodeFile(path)

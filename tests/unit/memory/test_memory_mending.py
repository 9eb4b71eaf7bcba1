"""Giving back in a group of which one node was also taken alone."""

from __future__ import annotations

import pytest
from tests.unit.memory.memory_builders import (
    GI,
    MANAGED_GATES,
    Node,
    container,
    hint,
    node,
    pod,
)

from numalign.memory.engine import KUBELET, SAFE, MemoryStrategies
from numalign.memory.mending import mend

WIDE = [pod("w1", container("c", "12Gi")), pod("w2", container("c", "4Gi"))]
ALONE = pod("alone", container("c", "5Gi"))


def torn_node(strategies: MemoryStrategies) -> Node:
    """Nodes 0 and 1 hold 4Gi of a group on node 1, and 5Gi on node 0 alone."""
    host = node(2, strategies=strategies)
    for whole in WIDE:
        assert host.allocate(whole, "c", hint(0, 1)) is None
    host.state = host.engine.release(host.state, WIDE[0].uid)
    assert host.allocate(ALONE, "c", hint(0)) is None
    assert host.reserved() == [5 * GI, 4 * GI]
    return host


@pytest.mark.parametrize(
    ("strategies", "then", "finally_"),
    [
        pytest.param(KUBELET, [GI, 4 * GI], [0, 4 * GI], id="kubelet-loses-4Gi"),
        pytest.param(SAFE, [5 * GI, 0], [0, 0], id="safe-gives-back-what-was-taken"),
    ],
)
def test_a_group_gives_back_before_its_lone_neighbour(
    strategies: MemoryStrategies, then: list[int], finally_: list[int]
) -> None:
    host = torn_node(strategies)
    host.state = host.engine.release(host.state, WIDE[1].uid)
    assert host.reserved() == then
    host.state = host.engine.release(host.state, ALONE.uid)

    assert host.reserved() == finally_


def test_bytes_that_can_be_explained_stay_where_they_are() -> None:
    """The kubelet's distribution within a group is kept, even where a replay would differ."""
    host = node(2)
    for whole in WIDE:
        assert host.allocate(whole, "c", hint(0, 1)) is None
    host.state = host.engine.release(host.state, WIDE[0].uid)

    assert host.reserved() == [0, 4 * GI]


def test_a_pod_booked_twice_is_held_once_after_the_next_release() -> None:
    """MEM-T5."""
    host = node(1, gates=MANAGED_GATES)
    twice = pod("p", container("a"), level={"cpu": "1", "memory": "3Gi"})
    once = pod("q", container("a", "1Gi"))
    for _ in range(2):
        assert host.allocate_pod(twice, hint(0)) is None
    assert host.allocate(once, "a", hint(0)) is None
    assert host.reserved() == [7 * GI]
    host.state = host.engine.release(host.state, once.uid)

    assert host.reserved() == [3 * GI]


def test_nothing_given_back_changes_nothing() -> None:
    state = torn_node(KUBELET).state

    assert mend(state, state, {}) is state

"""The kubelet's start check."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.memory.memory_builders import (
    GATES,
    GI,
    MANAGED_GATES,
    Node,
    block,
    books,
    container,
    hint,
    machine,
    node,
    pod,
    settings,
)

from numalign.errors import StartError
from numalign.memory.engine import KUBELET, build_engine
from numalign.memory.state import MemoryState, encode
from numalign.model.ids import NumaId, PodUid
from numalign.provider.values import MemoryBlock

DIFFERENT = "[memorymanager] the expected machine state is different from the real one"


def kubelet_node(nodes: int) -> Node:
    return node(nodes, strategies=KUBELET)


def start_error(host: Node, stored: bytes) -> str:
    with pytest.raises(StartError) as caught:
        host.engine.start(stored)
    assert caught.value.stage == "memory_manager_start"
    return str(caught.value)


def not_restored(cause: str) -> str:
    return (
        f"could not restore state from checkpoint: {cause}, please drain this node and delete "
        'the memory manager checkpoint file "/var/lib/kubelet/memory_manager_state" before '
        "restarting Kubelet"
    )


def test_what_was_stored_goes_on_unchanged() -> None:
    host = kubelet_node(2)
    assert host.allocate(pod("a", container("c", "12Gi")), "c", hint(0, 1)) is None
    assert host.allocate(pod("b", container("c", "4Gi")), "c", hint(0, 1)) is None
    before = host.state
    assert host.restart() == ()

    assert host.state == before


def test_bytes_may_lie_on_any_node_of_a_group() -> None:
    """A released pod leaves books that a replay would fill in another order (MEM-T17)."""
    host = kubelet_node(2)
    first = pod("a", container("c", "12Gi"))
    assert host.allocate(first, "c", hint(0, 1)) is None
    assert host.allocate(pod("b", container("c", "4Gi")), "c", hint(0, 1)) is None
    host.state = host.engine.release(host.state, first.uid)
    assert host.reserved() == [0, 4 * GI]
    assert host.restart() == ()

    assert host.reserved() == [0, 4 * GI]


def test_a_pod_booked_as_a_whole_is_replayed_as_a_whole() -> None:
    host = node(1, gates=MANAGED_GATES, strategies=KUBELET)
    whole = pod("p", container("a", "1Gi"), container("b"), level={"cpu": "2", "memory": "4Gi"})
    assert host.allocate_pod(whole, hint(0)) is None
    before = host.state
    assert host.restart() == ()
    assert host.state == before
    assert host.allocate_pod(whole, hint(0)) is None

    assert start_error(host, host.engine.encode(host.state)) == DIFFERENT


def test_machines_that_changed_refuse() -> None:
    host = kubelet_node(2)
    stored = host.engine.encode(host.state)
    larger = build_engine(settings(2), machine(2, gib=11), GATES, KUBELET)
    wider = build_engine(settings(3), machine(3), GATES, KUBELET)
    reserving = build_engine(settings(2, reserved="2Gi"), machine(2), GATES, KUBELET)
    paged = build_engine(settings(2), machine(2, huge_2mi=1), GATES, KUBELET)

    for engine in (larger, wider, reserving, paged):
        assert start_error(Node(engine, host.state), stored) == DIFFERENT


def _with_blocks(*blocks: MemoryBlock) -> MemoryState:
    return MemoryState(machine=books(1), containers={PodUid("u"): {"c": blocks}})


@pytest.mark.parametrize(
    ("state", "message"),
    [
        pytest.param(
            _with_blocks(block(1, 0, 7)),
            "[memorymanager] (pod: u, container: c) the memory assignment uses the NUMA that does "
            "not exist",
            id="unknown-node",
        ),
        pytest.param(
            _with_blocks(block(1, 0, resource="hugepages-2Mi")),
            "[memorymanager] (pod: u, container: c) the memory assignment uses memory resource "
            "that does not exist",
            id="unknown-resource",
        ),
        pytest.param(_with_blocks(block(1, 0)), DIFFERENT, id="blocks-that-are-not-booked"),
        pytest.param(
            replace(_with_blocks(block(1, 0)), machine={}),
            "[memorymanager] machine state can not be empty when it has memory assignments",
            id="blocks-without-books",
        ),
    ],
)
def test_stored_states_that_refuse(state: MemoryState, message: str) -> None:
    stored = encode(state, policy="Static", pod_entries=False)

    assert start_error(kubelet_node(1), stored) == message


def test_cells_and_assignments_count() -> None:
    host = kubelet_node(2)
    odd_cells = replace(books(2)[NumaId(0)], cells=(NumaId(0), NumaId(1)))
    odd_count = replace(books(2)[NumaId(0)], assignments=1)

    for odd in (odd_cells, odd_count):
        state = MemoryState(machine={**books(2), NumaId(0): odd})
        assert start_error(host, host.engine.encode(state)) == DIFFERENT


def test_an_empty_stored_state_becomes_the_empty_machine() -> None:
    stored = encode(MemoryState(machine={}), policy="Static", pod_entries=False)

    assert kubelet_node(2).engine.start(stored).state == MemoryState(machine=books(2))


def test_another_policy_refuses() -> None:
    stored = encode(MemoryState(machine={}), policy="None", pod_entries=False)

    assert start_error(kubelet_node(1), stored) == not_restored(
        '[memorymanager] configured policy "Static" differs from state checkpoint policy "None"'
    )


def test_turning_pod_level_management_off_refuses_and_on_does_not() -> None:
    """MEM-T14."""
    off, on = kubelet_node(1), node(1, gates=MANAGED_GATES, strategies=KUBELET)

    assert on.engine.start(off.engine.encode(off.state)).state == off.state
    assert start_error(off, on.engine.encode(on.state)) == not_restored("checkpoint is corrupted")


def test_what_cannot_be_read_refuses() -> None:
    assert start_error(kubelet_node(1), b"{").startswith(
        "could not restore state from checkpoint: the stored memory state cannot be read: "
    )


def test_the_none_policy_checks_nothing() -> None:
    engine = build_engine(settings(1, policy="None"), machine(1), GATES, KUBELET)
    stored = engine.encode(engine.start(None).state)

    assert engine.start(stored).state == MemoryState(machine={})

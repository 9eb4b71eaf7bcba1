"""A pod takes its recorded blocks back where the books have lost them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.memory.memory_builders import (
    GATES,
    GI,
    MANAGED_GATES,
    block,
    hint,
    machine,
    node,
    pod,
    settings,
)
from tests.unit.memory.memory_builders import container as memory_container

from numalign.memory.engine import SAFE, build_engine
from numalign.memory.state import MemoryState
from numalign.model.ids import PodUid
from numalign.provider.engine import Lost, Recorded
from numalign.provider.values import Holding, MemoryBlock, PodHolding

P = PodUid("p")


def recorded(
    *finished: str, whole: tuple[MemoryBlock, ...] = (), **blocks: MemoryBlock
) -> Recorded:
    return Recorded(
        pod_uid=P,
        holdings=tuple(Holding(container=c, memory=(b,)) for c, b in blocks.items()),
        pod_holding=PodHolding(memory=whole),
        finished=frozenset(finished),
    )


def test_the_books_are_as_before() -> None:
    before = node(2)
    one = pod("p", memory_container("a", "2Gi"), memory_container("b", "4Gi"))
    assert before.allocate(one, "a", hint(0)) is None
    assert before.allocate(one, "b", hint(1)) is None
    after = node(2)

    restored = after.engine.restore(after.state, recorded(b=block(4 * GI, 1), a=block(2 * GI, 0)))

    assert restored.lost == ()
    assert restored.state.machine == before.state.machine
    assert restored.state.containers == before.state.containers


def test_a_block_without_room_is_named_and_the_rest_comes_back() -> None:
    host = node(2)

    restored = host.engine.restore(host.state, recorded(a=block(20 * GI, 0), b=block(GI, 1)))

    assert restored.lost == (
        Lost(
            container="a",
            message=f"{20 * GI} bytes of memory: {20 * GI} bytes of memory on NUMA nodes 0 are "
            f"needed and {9 * GI} are free",
        ),
    )
    assert restored.state.containers == {P: {"b": (block(GI, 1),)}}


def test_a_node_that_is_gone_and_a_policy_that_is_none() -> None:
    host = node(1)
    none = build_engine(settings(1, policy="None"), machine(1), GATES, SAFE)

    gone = host.engine.restore(host.state, recorded(a=block(GI, 3)))
    given_up = none.restore(none.start(None).state, recorded(a=block(GI, 0)))

    assert "does not exist" in gone.lost[0].message
    assert given_up.lost[0].message == f"{GI} bytes of memory: the policy is None now"
    assert given_up.state == none.start(None).state


def test_what_a_finished_init_container_gave_back_stays_free() -> None:
    host = node(1)

    restored = host.engine.restore(host.state, recorded("i", i=block(GI, 0), a=block(GI, 0)))

    assert restored.lost == ()
    assert list(restored.state.containers[P]) == ["a"]


def test_a_pod_that_booked_as_a_whole_does_so_again() -> None:
    host = node(1, gates=MANAGED_GATES)
    whole = (block(4 * GI, 0),)

    restored = host.engine.restore(
        host.state, recorded(whole=whole, a=block(GI, 0), b=block(3 * GI, 0))
    )

    assert restored.state.pods == {P: whole}
    assert restored.state.machine[block(0, 0).numa_nodes[0]].tables["memory"].reserved == 4 * GI
    assert host.engine.release(restored.state, P).machine == host.state.machine


@given(
    asked=st.lists(
        st.tuples(st.integers(1, 12), st.sampled_from([(0,), (1,), (2,), (0, 1), (1, 2)])),
        min_size=1,
        max_size=8,
    )
)
def test_books_that_were_lost_come_back_whole(asked: list[tuple[int, tuple[int, ...]]]) -> None:
    before = node(3)
    for number, (gib, nodes) in enumerate(asked):
        before.allocate(pod(f"p{number}", memory_container("c", f"{gib}Gi")), "c", hint(*nodes))
    pods = [
        Recorded(pod_uid=uid, holdings=before.engine.holdings(before.state, uid))
        for uid in sorted(before.engine.pods(before.state))
    ]
    # As the record gives them back: single nodes first.
    pods.sort(key=lambda each: len(each.holdings[0].memory[0].numa_nodes) > 1)

    found = before.engine.start(None).state
    for each in pods:
        restored = before.engine.restore(found, each)
        assert restored.lost == ()
        found = restored.state

    assert found.containers == before.state.containers
    # A node that was taken alone and in a group may be counted with either (MEM-T3); what is
    # booked is the same, and the next start finds nothing to mend.
    assert _booked(found) == _booked(before.state)
    assert before.engine.start(before.engine.encode(found)).reports == ()


def _booked(state: MemoryState) -> int:
    return sum(memory.tables["memory"].reserved for memory in state.machine.values())

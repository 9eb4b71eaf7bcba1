"""What stands behind the hints."""

from __future__ import annotations

from tests.unit.memory.memory_builders import (
    GI,
    MANAGED_GATES,
    MI,
    container,
    hint,
    node,
    pod,
)

from numalign.model.ids import NumaId, PodUid
from numalign.provider.values import Holder, NodeFacts, ResourceFacts


def holder(uid: str, gib: int, name: str = "c") -> Holder:
    return Holder(pod_uid=PodUid(uid), container=name, amount=gib * GI)


def test_capacity_is_reserved_held_and_free() -> None:
    host = node(3)
    for uid, size, on in (("a", "10Gi", (0, 1)), ("b", "2Gi", (0, 1)), ("c", "1Gi", (2,))):
        assert host.allocate(pod(uid, container("c", size)), "c", hint(*on)) is None
    asking = pod("x", container("c", "10Gi"))
    facts = host.engine.facts(host.state, asking, asking.container("c"))

    assert facts == (
        ResourceFacts(
            resource="memory",
            requested=10 * GI,
            nodes=(
                NodeFacts(
                    node=NumaId(0), capacity=10 * GI, reserved=GI, free=0, holders=(holder("a", 9),)
                ),
                NodeFacts(
                    node=NumaId(1),
                    capacity=10 * GI,
                    reserved=GI,
                    free=6 * GI,
                    holders=(holder("a", 1), holder("b", 2)),
                ),
                NodeFacts(
                    node=NumaId(2),
                    capacity=10 * GI,
                    reserved=GI,
                    free=8 * GI,
                    holders=(holder("c", 1),),
                ),
            ),
            minimum_nodes=2,
            note="NUMA nodes in use as a group can only be used together: 0,1",
        ),
    )
    assert host.engine.facts(host.state, asking, None) == facts


def test_a_pod_booked_as_a_whole_is_one_holder() -> None:
    host = node(1, gates=MANAGED_GATES)
    whole = pod("p", container("a", "1Gi"), container("b"), level={"cpu": "2", "memory": "4Gi"})
    assert host.allocate_pod(whole, hint(0)) is None
    (facts,) = host.engine.facts(host.state, whole, None)

    assert facts.nodes[0].holders == (holder("p", 4, ""),)
    assert host.engine.facts(host.state, whole, whole.container("b")) == ()


def test_a_resource_that_no_node_has_shows_zeros() -> None:
    host = node(1)
    asking = pod("x", container("c", "100Gi", hugepages_2Mi="2Mi"))
    huge, memory = host.engine.facts(host.state, asking, None)

    assert huge == ResourceFacts(
        resource="hugepages-2Mi",
        requested=2 * MI,
        nodes=(NodeFacts(node=NumaId(0), capacity=0, reserved=0, free=0),),
    )
    assert memory.minimum_nodes is None


def test_nothing_for_pods_that_are_not_placed() -> None:
    host = node(1)
    other = pod("x", container("c", "1Gi"), qos="Burstable")

    assert host.engine.facts(host.state, other, None) == ()

"""What a pod asks for and has not booked."""

from __future__ import annotations

from tests.unit.memory.memory_builders import GI, MANAGED_GATES, container, hint, node, pod

from numalign.provider.engine import Lost

NOTHING: frozenset[str] = frozenset()


def test_a_pod_that_came_before_the_policy_is_named_and_a_finished_init_container_not() -> None:
    host = node(2)
    one = pod("p", container("i", "2Gi", init=True), container("c", "1Gi"))

    assert host.engine.missing(host.state, one, frozenset({"i"})) == (
        Lost(container="c", message=f"not booked: asks for {GI} bytes of memory, has none"),
    )


def test_what_is_booked_is_not_missing_although_init_containers_hand_theirs_on() -> None:
    host = node(2)
    one = pod("p", container("i", "2Gi", init=True), container("c", "1Gi"))
    assert host.allocate(one, "i", hint(0)) is None
    assert host.allocate(one, "c", hint(0)) is None

    assert host.engine.missing(host.state, one, NOTHING) == ()


def test_another_amount_is_another_pod() -> None:
    host = node(2)
    assert host.allocate(pod("p", container("c", "1Gi")), "c", hint(0)) is None

    assert host.engine.missing(host.state, pod("p", container("c", "2Gi")), NOTHING) == (
        Lost(
            container="c",
            message=f"holds {GI} bytes of memory, asks for {2 * GI} bytes of memory",
            differs=True,
        ),
    )


def test_a_pod_managed_as_a_whole_is_compared_as_a_whole() -> None:
    host = node(2, gates=MANAGED_GATES)
    one = pod("p", container("c", "1Gi"), level={"cpu": "1", "memory": "3Gi"}, qos="Guaranteed")

    assert [lost.container for lost in host.engine.missing(host.state, one, NOTHING)] == [""]
    assert host.allocate_pod(one, hint(0)) is None
    assert host.engine.missing(host.state, one, NOTHING) == ()

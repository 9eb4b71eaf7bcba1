from __future__ import annotations

from tests.unit.device.device_world import GPU, NIC, ids
from tests.unit.device.kubelet.kubelet_world import FOUR, bare, told, told_pod

from numalign.device.kubelet.observation import (
    Observation,
    given,
    in_use,
    inventory_of,
    refreshed,
    with_pod,
    with_pods,
    without_pod,
)
from numalign.device.kubelet.values import PodKey

X, N = ids("x", "n")
P = told_pod("p", {"c": (told("a", 0), told("x", 0), told("x", 1), bare("n", NIC))})


def test_what_can_be_given_out_is_healthy_and_what_is_only_held_is_not() -> None:
    seen = refreshed(Observation(), FOUR, (P,))

    inventory = inventory_of(seen)

    assert inventory.of(GPU).healthy == frozenset(ids("a", "b", "c", "d"))
    assert inventory.of(GPU).unhealthy == frozenset(ids("x"))
    assert inventory.of(GPU).devices[X].numa_nodes == (0, 1)
    assert inventory.of(NIC).healthy == frozenset()
    assert inventory.of(NIC).devices[N].numa_nodes is None


def test_a_device_told_twice_is_on_both_nodes() -> None:
    seen = refreshed(Observation(), (told("a", 1), told("a", 0)), ())

    (device,) = inventory_of(seen).of(GPU).devices.values()

    assert device.numa_nodes == (0, 1)


def test_in_use_is_what_pods_hold() -> None:
    seen = refreshed(Observation(), FOUR, (P,))

    assert in_use(seen) == {GPU: {"a", "x"}, NIC: {"n"}}


def test_given_is_recorded_by_node() -> None:
    seen = refreshed(Observation(), FOUR, (P,))

    records = given(seen, P.key, "c")

    assert {name: dict(r.ids_by_node) for name, r in records.items()} == {
        GPU: {0: ("a", "x"), 1: ("x",)},
        NIC: {-1: ("n",)},
    }
    assert given(seen, P.key, "other") == {}
    assert given(seen, PodKey("other", "p"), "c") == {}


def test_a_device_told_with_and_without_a_node_is_recorded_on_the_node() -> None:
    q = told_pod("q", {"c": (bare("a"), told("a", 1), bare("b"))})
    seen = refreshed(Observation(), FOUR, (q,))

    assert dict(given(seen, q.key, "c")[GPU].ids_by_node) == {-1: ("b",), 1: ("a",)}


def test_a_resource_that_is_not_told_of_any_more_is_not_forgotten() -> None:
    seen = refreshed(refreshed(Observation(), FOUR, (P,)), (), ())

    assert seen.resources() == {GPU, NIC}
    assert inventory_of(seen).of(GPU).healthy == frozenset()
    assert in_use(seen) == {GPU: frozenset(), NIC: frozenset()}


def test_pods_are_replaced_alone_or_together() -> None:
    q = told_pod("q", {"c": (told("b", 0),)})
    seen = with_pod(refreshed(Observation(), FOUR, (P,)), q)

    assert set(seen.pods) == {P.key, q.key}
    assert set(without_pod(seen, P.key).pods) == {q.key}
    assert set(with_pods(seen, (P,)).pods) == {P.key}
    assert with_pods(seen, (P,)).allocatable == FOUR

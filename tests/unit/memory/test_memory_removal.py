"""Forgetting containers and pods."""

from __future__ import annotations

from tests.unit.memory.memory_builders import (
    GI,
    MANAGED_GATES,
    books,
    container,
    hint,
    node,
    pod,
)

from numalign.memory.removal import release_pod, remove_container, remove_stale
from numalign.model.ids import NumaId, PodUid

INIT_POD = pod(
    "p",
    container("i", "3Gi", init=True),
    container("s", "1Gi", sidecar=True),
    container("j", "2Gi", init=True),
    container("a", "2Gi"),
)
LEVEL_POD = pod("q", container("a", "1Gi"), container("b"), level={"cpu": "2", "memory": "4Gi"})


def test_nothing_held_gives_the_same_state() -> None:
    state = node(1).state

    assert remove_container(state, PodUid("p"), "a") is state
    assert release_pod(state, PodUid("p")) is state
    assert remove_stale(state, {}) is state


def test_starting_containers_ends_the_init_containers_before_them() -> None:
    host = node(1)
    for one in INIT_POD.all_containers():
        assert host.allocate(INIT_POD, one.name, hint(0)) is None
    held = []
    for one in INIT_POD.all_containers():
        host.start_container(INIT_POD, one.name)
        held.append(sorted(host.sizes("p")))

    assert held == [
        ["a", "i", "j", "s"],
        ["a", "j", "s"],
        ["a", "j", "s"],
        ["a", "s"],
    ]
    assert host.reserved() == [3 * GI]


def test_release_frees_each_byte_once() -> None:
    host = node(1)
    for one in INIT_POD.all_containers():
        assert host.allocate(INIT_POD, one.name, hint(0)) is None
    state = release_pod(host.state, INIT_POD.uid)

    assert state.machine == books(1)
    assert (state.containers, state.reusable) == ({}, {})


def test_a_pod_that_booked_as_a_whole_gives_back_with_its_last_container() -> None:
    host = node(1, gates=MANAGED_GATES)
    assert host.allocate_pod(LEVEL_POD, hint(0)) is None
    first = remove_container(host.state, LEVEL_POD.uid, "a")
    assert first.machine == host.state.machine
    last = remove_container(first, LEVEL_POD.uid, "b")

    assert (last.machine, last.containers, last.pods) == (books(1), {}, {})
    assert release_pod(host.state, LEVEL_POD.uid) == last


def test_stale_containers_go_and_active_ones_stay() -> None:
    host = node(2)
    stays, goes = (
        pod("p", container("a", "1Gi"), container("b", "2Gi")),
        pod("q", container("a", "4Gi")),
    )
    for whole, name in ((stays, "a"), (stays, "b"), (goes, "a")):
        assert host.allocate(whole, name, hint(1)) is None
    state = remove_stale(host.state, {stays.uid: frozenset({"b"})})

    assert {uid: list(entries) for uid, entries in state.containers.items()} == {"p": ["b"]}
    assert state.machine[NumaId(1)].tables["memory"].reserved == 2 * GI
    assert remove_stale(state, {stays.uid: frozenset({"b", "c"})}) is state

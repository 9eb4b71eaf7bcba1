"""Pod-level resources: the pool, its shares, and when the shared containers get nothing."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.memory.memory_builders import (
    GI,
    MANAGED_GATES,
    MI,
    block,
    container,
    hint,
    node,
    pod,
)

from numalign.memory.pod_level import (
    EMPTY_SHARED_POOL,
    container_requests,
    divide,
    empty_shared_pool,
)
from numalign.model.hint import NO_HINT
from numalign.model.numa_mask import mask_of
from numalign.model.pod import Container, Pod
from numalign.provider.engine import Sources
from numalign.provider.values import AllocationFailure, MemoryBlock

LEVEL = {"cpu": "8", "memory": "9Gi"}
HUGE = "hugepages-2Mi"


def shared(name: str, *, init: bool = False, sidecar: bool = False) -> Container:
    return container(name, init=init, sidecar=sidecar)


def own(name: str, gib: int, *, init: bool = False, sidecar: bool = False) -> Container:
    return container(name, f"{gib}Gi", init=init, sidecar=sidecar)


def shares(whole: Pod, request: dict[str, int]) -> dict[str, tuple[MemoryBlock, ...]]:
    requests = container_requests(whole, MANAGED_GATES)
    assert requests is not None
    return dict(divide(whole, request, requests, mask_of((0,))))


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        pytest.param([own("a", 2), shared("b")], {"a": 2, "b": 7}, id="one-of-each"),
        pytest.param([own("a", 2), own("b", 3)], {"a": 2, "b": 3}, id="all-exclusive"),
        pytest.param([shared("a"), shared("b")], {"a": 9, "b": 9}, id="all-shared"),
        pytest.param(
            [
                shared("i", init=True),
                own("s", 2, sidecar=True),
                shared("j", init=True),
                shared("t", sidecar=True),
                own("a", 3),
                shared("b"),
            ],
            {"i": 9, "s": 2, "j": 7, "t": 4, "a": 3, "b": 4},
            id="sidecars-before-an-init-container-count",
        ),
        pytest.param(
            [own("s", 2, sidecar=True), own("i", 8, init=True), own("a", 1)],
            {"s": 2, "i": 8, "a": 1},
            id="no-fit-check-inside-the-pod-T23",
        ),
    ],
)
def test_shares(containers: list[Container], expected: dict[str, int]) -> None:
    whole = pod("p", *containers, level=LEVEL)

    assert shares(whole, {"memory": 9 * GI}) == {
        name: (block(gib * GI, 0),) for name, gib in expected.items()
    }


def test_a_size_that_the_pod_does_not_have_wraps_around() -> None:
    """MEM-T22."""
    whole = pod("p", container("a", "1Gi", hugepages_2Mi="2Mi"), shared("b"), level=LEVEL)

    assert shares(whole, {"memory": 9 * GI})["b"] == (
        block((1 << 64) - 2 * MI, 0, resource=HUGE),
        block(8 * GI, 0),
    )


@pytest.mark.parametrize(
    ("containers", "problem"),
    [
        pytest.param([own("a", 8), shared("b")], None, id="something-left"),
        pytest.param([own("a", 9), own("b", 9)], None, id="nobody-shares"),
        pytest.param(
            [own("a", 9), shared("b")],
            "pod rejected, sum of exclusive container memory requests equals pod budget, leaving "
            "no memory for shared containers",
            id="nothing-left-for-app-containers",
        ),
        pytest.param(
            [own("s", 5, sidecar=True), shared("t", sidecar=True), own("a", 4)],
            "pod rejected, sum of exclusive container memory requests equals pod budget, leaving "
            "no memory for shared containers",
            id="nothing-left-for-a-sidecar",
        ),
        pytest.param(
            [own("s", 9, sidecar=True), shared("i", init=True), own("a", 1)],
            "pod rejected, pod has shared init containers but no memory available for them",
            id="nothing-left-for-an-init-container",
        ),
        pytest.param(
            [own("i", 9, init=True), shared("a")], None, id="init-containers-are-gone-by-then"
        ),
        pytest.param(
            [shared("i", init=True), own("s", 9, sidecar=True), own("a", 1)],
            None,
            id="later-sidecars-do-not-count",
        ),
    ],
)
def test_the_shared_pool_must_not_be_empty(
    containers: list[Container], problem: str | None
) -> None:
    whole = pod("p", *containers, level=LEVEL)
    requests = container_requests(whole, MANAGED_GATES)
    assert requests is not None
    assert empty_shared_pool(whole, {"memory": 9 * GI}, requests) == problem

    host = node(2, gates=MANAGED_GATES)
    outcome = asyncio.run(host.engine.allocate_pod(host.state, whole, hint(0), Sources()))
    expected = None if problem is None else AllocationFailure(problem, EMPTY_SHARED_POOL)
    assert outcome.failure == expected
    impossible = {"memory": ()}
    assert (host.hints(whole) == impossible) is (problem is not None)


def test_the_pod_is_booked_once() -> None:
    host = node(2, gates=MANAGED_GATES)
    whole = pod("p", own("s", 2, sidecar=True), own("i", 8, init=True), shared("a"), level=LEVEL)
    assert host.allocate_pod(whole, hint(0)) is None

    assert host.reserved() == [9 * GI, 0]
    assert host.state.pods == {"p": (block(9 * GI, 0),)}
    assert host.state.reusable == {}
    assert [m.assignments for m in host.state.machine.values()] == [1, 0]
    assert host.engine.pod_holding(host.state, whole.uid).memory == (block(9 * GI, 0),)


def test_allocating_a_pod_again_books_it_again() -> None:
    """MEM-T5."""
    host = node(1, gates=MANAGED_GATES)
    whole = pod("p", shared("a"), level={"cpu": "1", "memory": "4Gi"})
    for _ in range(2):
        assert host.allocate_pod(whole, hint(0)) is None

    assert host.reserved() == [8 * GI]
    assert [m.assignments for m in host.state.machine.values()] == [2]
    assert host.sizes("p") == {"a": [4 * GI]}


def test_a_shared_container_without_a_mask_fails_in_container_scope() -> None:
    """MEM-T6; with a mask it gets an entry without blocks (MEM-40)."""
    host = node(2, gates=MANAGED_GATES)
    whole = pod("p", own("a", 1), shared("b"), shared("c"), level={"cpu": "4", "memory": "4Gi"})
    assert host.allocate(whole, "a") is None

    assert host.allocate(whole, "b") == (
        "[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough "
        "memory is available"
    )
    assert host.allocate(whole, "c", hint(1)) is None
    assert host.sizes("p") == {"a": [GI], "c": []}
    assert host.state.pods == {}


@pytest.mark.parametrize(
    "whole",
    [
        pytest.param(pod("p", shared("a"), level=LEVEL, qos="Burstable"), id="not-guaranteed"),
        pytest.param(pod("p", shared("a"), level={"cpu": "1", "memory": "1500m"}), id="no-integer"),
    ],
)
def test_pods_that_are_let_through_without_a_record(whole: Pod) -> None:
    host = node(1, gates=MANAGED_GATES)
    before = host.state

    assert host.allocate_pod(whole, NO_HINT) is None
    assert host.state is before

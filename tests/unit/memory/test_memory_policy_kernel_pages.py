"""The policy that asks the kernel: where it has less than the books, and where it has as much."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.memory.memory_builders import (
    GATES,
    GI,
    MANAGED_GATES,
    MI,
    container,
    hint,
    machine,
    pod,
)
from tests.unit.memory.memory_builders import settings as memory_settings

from numalign.errors import Deferred
from numalign.memory.engine import SAFE, MemoryEngine, build_engine
from numalign.memory.policy_kernel_pages import REASON, RETRY_SECONDS, KernelCheck
from numalign.memory.state import MemoryState
from numalign.model.feature_gates import FeatureGates
from numalign.model.hint import NO_HINT, TopologyHint
from numalign.model.pod import Pod
from numalign.model.settings import KernelHugePages
from numalign.provider.engine import Allocated, Sources

PAGES = "hugepages-2Mi"
Free = Mapping[tuple[int, str], int]
NEVER = Sources(active=None)
REFUSE, DEFER = KernelHugePages.REFUSE, KernelHugePages.DEFER


def engine(
    nodes: int, free: Free | None, mode: KernelHugePages = REFUSE, gates: FeatureGates = GATES
) -> MemoryEngine:
    """Nodes with 1Gi in pages of 2Mi; `free` None: the kernel is not asked."""
    check = None if free is None else KernelCheck(lambda: free, mode)
    where = machine(nodes, huge_2mi=512)
    return build_engine(memory_settings(nodes), where, gates, SAFE, check)


def start(by: MemoryEngine) -> MemoryState:
    return by.start(None).state


def allocate(
    by: MemoryEngine, state: MemoryState, which: Pod, name: str, affinity: TopologyHint
) -> Allocated[MemoryState]:
    return asyncio.run(by.allocate(state, which, which.container(name), affinity, NEVER))


def paging(uid: str, pages: str, *more: str) -> Pod:
    sizes = (pages, *more)
    return pod(
        uid,
        *(container(f"c{i}", "1Gi", hugepages_2Mi=size) for i, size in enumerate(sizes)),
    )


def test_a_pod_that_the_kernel_has_no_pages_for_is_refused_with_the_figures() -> None:
    by = engine(1, {(0, PAGES): 100 * MI})
    state = start(by)

    outcome = allocate(by, state, paging("p", "512Mi"), "c0", hint(0))

    assert outcome.failure is not None
    assert outcome.failure.reason == REASON
    assert outcome.failure.message == (
        "hugepages-2Mi on NUMA node 0: 512Mi asked for, 100Mi free in the kernel, at least 924Mi "
        "used outside the books"
    )
    assert outcome.state == state


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda by, s, p: by.topology_hints(s, p, p.containers[0], NEVER), id="hints"),
        pytest.param(lambda by, s, p: by.pod_topology_hints(s, p, NEVER), id="pod-hints"),
        pytest.param(lambda by, s, p: allocate(by, s, p, "c0", hint(0)), id="allocate"),
    ],
)
def test_or_has_to_wait(ask: Callable[[MemoryEngine, MemoryState, Pod], object]) -> None:
    by = engine(1, {(0, PAGES): 100 * MI}, DEFER)

    with pytest.raises(Deferred, match="512Mi asked for, 100Mi free in the kernel") as deferred:
        ask(by, start(by), paging("p", "512Mi"))

    assert (deferred.value.reason, deferred.value.retry_after) == (REASON, RETRY_SECONDS)


@pytest.mark.parametrize("mode", [REFUSE, DEFER])
def test_hints_lead_to_the_node_that_has_them(mode: KernelHugePages) -> None:
    by = engine(2, {(0, PAGES): 100 * MI, (1, PAGES): GI}, mode)
    state, which = start(by), paging("p", "512Mi")

    hints = by.topology_hints(state, which, which.container("c0"), NEVER).hints
    anywhere = allocate(by, state, which, "c0", NO_HINT)

    assert hints is not None
    assert hints[PAGES] == (hint(1), hint(0, 1, preferred=False))
    assert anywhere.failure is None
    blocks = anywhere.state.blocks(which.uid, "c0") or ()
    assert {block.numa_nodes for block in blocks} == {(1,)}


def test_refused_hints_are_those_of_the_books_so_that_the_figures_are_told() -> None:
    by, plain = engine(1, {(0, PAGES): 0}), engine(1, None)
    which = paging("p", "512Mi")

    assert (
        by.topology_hints(start(by), which, which.container("c0"), NEVER).hints
        == plain.topology_hints(start(plain), which, which.container("c0"), NEVER).hints
    )


def test_what_the_books_lack_is_told_in_the_kubelets_words() -> None:
    by, plain = engine(1, {(0, PAGES): 0}), engine(1, None)
    which = paging("p", "2Gi")

    outcome = allocate(by, start(by), which, "c0", NO_HINT)

    assert outcome.failure is not None
    assert outcome.failure == allocate(plain, start(plain), which, "c0", NO_HINT).failure
    assert by.topology_hints(start(by), which, which.container("c0"), NEVER).hints == {}


def test_containers_of_a_pod_count_together() -> None:
    by = engine(1, {(0, PAGES): 600 * MI})
    which = paging("p", "400Mi", "400Mi")
    first = allocate(by, start(by), which, "c0", hint(0))

    second = allocate(by, first.state, which, "c1", hint(0))

    assert first.failure is None
    assert second.failure is not None
    assert "400Mi asked for, 200Mi free in the kernel" in second.failure.message


def test_what_an_init_container_leaves_can_be_used_again() -> None:
    by = engine(1, {(0, PAGES): 600 * MI})
    which = pod(
        "p",
        container("i", "1Gi", init=True, hugepages_2Mi="400Mi"),
        container("c", "1Gi", hugepages_2Mi="400Mi"),
    )
    first = allocate(by, start(by), which, "i", hint(0))

    second = allocate(by, first.state, which, "c", hint(0))

    assert (first.failure, second.failure) == (None, None)


def test_pages_of_a_pod_that_is_there_are_its_own() -> None:
    plain = engine(1, None)
    which = paging("p", "512Mi")
    state = allocate(plain, start(plain), which, "c0", hint(0)).state
    by = engine(1, {(0, PAGES): 0})

    assert allocate(by, state, which, "c0", hint(0)).failure is None
    assert by.topology_hints(state, which, which.container("c0"), NEVER).hints is not None


def test_a_pod_with_resources_of_its_own() -> None:
    by = engine(1, {(0, PAGES): 100 * MI}, gates=MANAGED_GATES)
    which = pod(
        "p",
        container("c", "1Gi", hugepages_2Mi="512Mi"),
        level={"cpu": "1", "memory": "2Gi", PAGES: "512Mi"},
    )

    outcome = asyncio.run(by.allocate_pod(start(by), which, hint(0), NEVER))

    assert outcome.failure is not None
    assert outcome.failure.reason == REASON


def test_memory_alone_asks_nobody() -> None:
    def never() -> Free:
        raise AssertionError("the kernel was asked")

    by = build_engine(
        memory_settings(1), machine(1, huge_2mi=512), GATES, SAFE, KernelCheck(never, REFUSE)
    )
    which = pod("p", container("c", "1Gi"))
    state = start(by)

    assert by.topology_hints(state, which, which.containers[0], NEVER).hints is not None
    assert allocate(by, state, which, "c", hint(0)).failure is None
    assert by.facts(state, which, which.containers[0])


def test_facts_say_what_the_kernel_has() -> None:
    by = engine(1, {(0, PAGES): 100 * MI})
    which = paging("p", "512Mi")

    facts = {f.resource: f for f in by.facts(start(by), which, which.containers[0])}

    assert [node.free for node in facts[PAGES].nodes] == [100 * MI]
    assert facts[PAGES].note == "the kernel has only 100Mi on NUMA node 0 free"
    assert facts["memory"].note == ""


amounts = st.integers(0, 6).map(lambda n: n * 128 * MI)


@given(
    asked=st.lists(st.tuples(st.integers(1, 6), st.sets(st.integers(0, 2))), max_size=5),
    free=st.lists(amounts, min_size=3, max_size=3),
)
@settings(deadline=None)
def test_nothing_is_given_that_the_kernel_lacks_and_the_books_stay_sound(
    asked: list[tuple[int, set[int]]], free: list[int]
) -> None:
    kernel = {(node, PAGES): amount for node, amount in enumerate(free)}
    by, plain = engine(3, kernel), engine(3, None)
    state = start(by)
    for number, (size, nodes) in enumerate(asked):
        which = paging(f"p{number}", f"{size * 128}Mi")
        affinity = hint(*nodes) if nodes else NO_HINT

        outcome = allocate(by, state, which, "c0", affinity)

        if outcome.failure is not None:
            assert outcome.state == state
            continue
        blocks = outcome.state.blocks(which.uid, "c0") or ()
        (pages,) = [block for block in blocks if block.resource == PAGES]
        assert sum(kernel[node, PAGES] for node in pages.numa_nodes) >= pages.size
        same = allocate(plain, state, which, "c0", hint(*pages.numa_nodes))
        assert same.state == outcome.state
        state = outcome.state


@given(
    asked=st.lists(st.tuples(st.integers(1, 9), st.sets(st.integers(0, 2))), max_size=5),
)
@settings(deadline=None)
def test_with_as_much_free_as_the_books_say_it_decides_as_they_do(
    asked: list[tuple[int, set[int]]],
) -> None:
    by, plain = engine(3, {(node, PAGES): 1 << 40 for node in range(3)}), engine(3, None)
    state = start(by)
    for number, (size, nodes) in enumerate(asked):
        which = paging(f"p{number}", f"{size * 128}Mi")
        affinity = hint(*nodes) if nodes else NO_HINT
        one = which.containers[0]

        assert by.topology_hints(state, which, one, NEVER) == plain.topology_hints(
            state, which, one, NEVER
        )
        outcome = allocate(by, state, which, "c0", affinity)

        assert outcome == allocate(plain, state, which, "c0", affinity)
        state = outcome.state

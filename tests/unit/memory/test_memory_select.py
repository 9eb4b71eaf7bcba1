"""The final choice of NUMA nodes: default, extension, groups."""

from __future__ import annotations

import pytest
from tests.unit.memory.memory_builders import GI, books, container, hint, node, pod

from numalign.memory import select
from numalign.memory.eligibility import Request
from numalign.memory.faults import MemoryFault
from numalign.memory.select import choose_mask
from numalign.model.hint import NO_HINT, TopologyHint
from numalign.model.numa_mask import mask_of
from numalign.provider.values import AllocationFailure

NO_AFFINITY_PREFERRED = TopologyHint(None, True)


@pytest.mark.parametrize(
    ("request_", "affinity", "expected"),
    [
        pytest.param({"memory": GI}, NO_HINT, (0,), id="default-is-the-narrowest"),
        pytest.param({"memory": 10 * GI}, NO_HINT, (0, 1), id="default-of-two-nodes"),
        pytest.param({"memory": GI}, hint(1), (1,), id="as-told"),
        pytest.param({"memory": GI}, hint(0, 1, 2), (0, 1, 2), id="wider-than-needed"),
        pytest.param({"memory": 10 * GI}, hint(2), (0, 2), id="extended-to-the-narrowest"),
        pytest.param({"memory": 100 * GI}, NO_HINT, select.NO_DEFAULT, id="default-none-T1"),
        pytest.param({"memory": 100 * GI}, hint(0), select.NO_EXTENSION, id="extension-none-T1"),
        pytest.param({}, NO_HINT, select.NO_DEFAULT, id="nothing-asked-no-mask-T6"),
        pytest.param({}, hint(1), (1,), id="nothing-asked-with-a-mask"),
    ],
)
def test_choice_on_an_empty_machine(
    request_: Request, affinity: TopologyHint, expected: tuple[int, ...] | AllocationFailure
) -> None:
    chosen = choose_mask(books(3), request_, affinity, {})

    assert chosen == (mask_of(expected) if isinstance(expected, tuple) else expected)


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        pytest.param(
            select.NO_DEFAULT,
            "[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough "
            "memory is available",
            id="default",
        ),
        pytest.param(
            select.NO_PREFERRED_DEFAULT,
            "[memorymanager] failed to find the default preferred hint",
            id="preferred-default",
        ),
        pytest.param(
            select.NO_EXTENSION,
            "[memorymanager] failed to find NUMA nodes to extend the current topology hint",
            id="extension",
        ),
        pytest.param(
            select.NO_PREFERRED_EXTENSION,
            "[memorymanager] failed to find the extended preferred hint",
            id="preferred-extension",
        ),
        pytest.param(
            select.BROKEN_GROUP,
            "[memorymanager] preferred hint violates NUMA node allocation",
            id="group",
        ),
    ],
)
def test_texts(failure: AllocationFailure, text: str) -> None:
    assert failure == AllocationFailure(text)


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        pytest.param(NO_AFFINITY_PREFERRED, select.NO_PREFERRED_DEFAULT, id="preferred-default"),
        pytest.param(hint(0), select.NO_PREFERRED_EXTENSION, id="preferred-extension"),
        pytest.param(hint(0, preferred=False), mask_of((0, 1)), id="extension-of-a-poor-hint"),
        pytest.param(hint(1, 2, preferred=False), select.BROKEN_GROUP, id="group-torn"),
        pytest.param(hint(0, 1, 2, preferred=False), select.BROKEN_GROUP, id="group-joined"),
    ],
)
def test_choice_beside_a_group(affinity: TopologyHint, expected: object) -> None:
    """Nodes 0 and 1 are a group that filled node 0; node 2 has 1Gi left."""
    host = node(3)
    assert host.allocate(pod("a", container("c", "10Gi")), "c", hint(0, 1)) is None
    assert host.allocate(pod("b", container("c", "8Gi")), "c", hint(2)) is None

    assert choose_mask(host.state.machine, {"memory": 4 * GI}, affinity, {}) == expected


def test_a_single_node_of_a_group_is_taken_when_told() -> None:
    """MEM-T3."""
    host = node(2)
    assert host.allocate(pod("a", container("c", "10Gi")), "c", hint(0, 1)) is None
    later = pod("b", container("c", "4Gi"))
    assert host.hints(later, "c") == {"memory": (hint(0, 1, preferred=False),)}
    assert host.allocate(later, "c", hint(1)) is None

    assert [memory.cells for memory in host.state.machine.values()] == [(0, 1), (1,)]


def test_nodes_that_do_not_exist_are_a_fault() -> None:
    with pytest.raises(MemoryFault, match="NUMA node 5 does not exist"):
        choose_mask(books(2), {"memory": GI}, hint(5), {})


def test_huge_pages_alone_have_no_default() -> None:
    chosen = choose_mask(books(2, huge_2mi=512), {"hugepages-2Mi": GI}, NO_HINT, {})

    assert chosen == select.NO_DEFAULT

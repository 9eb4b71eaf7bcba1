"""Hints against the rules written out literally, and the specification's examples."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.unit.memory.memory_builders import (
    GI,
    block,
    books,
    container,
    hint,
    listed,
    node,
    pod,
)

from numalign.families.expand import expand
from numalign.memory.columns import columns_of, minimum_nodes
from numalign.memory.described import adds_up, described_hints
from numalign.memory.eligibility import Request
from numalign.memory.faults import MemoryFault
from numalign.memory.hints import (
    MOST_NODES,
    best_hint,
    compute_hints,
    fitting_hints,
    regenerate_hints,
)
from numalign.memory.machine_state import UINT64, MachineState, NodeMemory, Reusable, Table
from numalign.model.hint import ProviderHints, TopologyHint
from numalign.model.ids import NumaId
from numalign.model.numa_mask import NumaMask, mask_of
from numalign.model.pod import Pod
from numalign.provider.values import MemoryBlock

HUGE = "hugepages-2Mi"


def literal_hints(machine: MachineState, request: Request, reusable: Reusable) -> ProviderHints:
    """MEM-26..MEM-28 step by step, without any short cut."""
    minimum = len(machine)
    masks: list[NumaMask] = []
    for size in range(1, len(machine) + 1):
        for ids in combinations(sorted(machine), size):
            mask = mask_of(ids)
            members = [machine[NumaId(i)] for i in ids]
            if any(
                sum(m.tables[r].allocatable for m in members) & UINT64 < amount
                for r, amount in request.items()
            ):
                continue
            minimum = min(minimum, size)
            if size == 1 and len(members[0].cells) > 1:
                continue
            if size > 1 and any(
                m.assignments > 0 and (len(m.cells) == 1 or set(m.cells) != set(ids))
                for m in members
            ):
                continue
            if any(
                sum(m.tables[r].free for m in members) + reusable.get((mask, r), 0) & UINT64
                < amount
                for r, amount in request.items()
            ):
                continue
            masks.append(mask)
    hints = tuple(TopologyHint(mask, mask.bit_count() == minimum) for mask in masks)
    return dict.fromkeys(request, hints) if hints else {}


@st.composite
def machines(draw: st.DrawFn) -> MachineState:
    """Books of up to five nodes, some of them in groups, not all of them consistent."""
    ids = draw(st.lists(st.integers(0, 63), min_size=1, max_size=5, unique=True))
    amounts = st.integers(0, 12) | st.just(UINT64 - 3)
    machine: dict[NumaId, NodeMemory] = {}
    for one in sorted(ids):
        cells = draw(st.just((one,)) | st.sets(st.sampled_from(ids), min_size=1).map(tuple))
        tables = {}
        for resource in ("memory", HUGE):
            allocatable = draw(amounts)
            free = draw(st.integers(0, min(allocatable, 12)))
            tables[resource] = Table(
                total=allocatable,
                system_reserved=0,
                allocatable=allocatable,
                reserved=allocatable - free,
                free=free,
            )
        machine[NumaId(one)] = NodeMemory(
            assignments=draw(st.integers(0, 2)),
            cells=tuple(NumaId(cell) for cell in cells),
            tables=tables,
        )
    return machine


@given(data=st.data(), machine=machines())
def test_hints_are_those_of_the_literal_rules(data: st.DataObject, machine: MachineState) -> None:
    resources = data.draw(st.lists(st.sampled_from(["memory", HUGE]), unique=True))
    request = {resource: data.draw(st.integers(0, 25)) for resource in resources}
    subsets = st.sets(st.sampled_from(sorted(machine)), min_size=1).map(mask_of)
    reusable = data.draw(
        st.dictionaries(st.tuples(subsets, st.sampled_from(["memory", HUGE])), st.integers(0, 9))
    )

    assert compute_hints(machine, request, reusable) == literal_hints(machine, request, reusable)


@given(data=st.data(), machine=machines())
def test_the_minimum_is_that_of_all_masks(data: st.DataObject, machine: MachineState) -> None:
    request = {"memory": data.draw(st.integers(0, 50)), HUGE: data.draw(st.integers(0, 50))}
    fitting = [
        size
        for size in range(1, len(machine) + 1)
        for ids in combinations(machine.values(), size)
        if all(sum(m.tables[r].allocatable for m in ids) >= a for r, a in request.items())
    ]

    assert minimum_nodes(columns_of(machine, request)) == (min(fitting) if fitting else None)


def test_masks_come_by_size_and_then_lexicographically() -> None:
    hints = compute_hints(books(3), {"memory": GI}, {})

    assert listed(hints) == ["0*", "1*", "2*", "0,1", "0,2", "1,2", "0,1,2"]


def test_all_resources_share_one_list() -> None:
    hints = compute_hints(books(2, huge_2mi=512), {HUGE: GI + 1, "memory": 1}, {})

    assert listed(hints, HUGE) == listed(hints) == ["0,1*"]


def test_nothing_fits_is_an_empty_mapping() -> None:
    """MEM-T1."""
    assert compute_hints(books(2), {"memory": 100 * GI}, {}) == {}


def test_preferred_ignores_free_memory() -> None:
    """MEM-T2: one node could hold 6Gi, so the group of two that does is not preferred."""
    host = node(3)
    assert host.allocate(pod("a", container("c", "12Gi")), "c", hint(0, 1)) is None
    assert host.allocate(pod("b", container("c", "6Gi")), "c", hint(2)) is None
    later = pod("x", container("c", "6Gi"))

    assert listed(host.hints(later, "c")) == ["0,1"]
    assert (
        host.allocate(later, "c", TopologyHint(None, True))
        == "[memorymanager] failed to find the default preferred hint"
    )


def test_a_group_is_only_usable_as_a_whole() -> None:
    """MEM-T18."""
    host = node(3)
    assert host.allocate(pod("a", container("c", "10Gi")), "c", hint(0, 1)) is None

    assert listed(host.hints(pod("x", container("c", "1Gi")), "c")) == ["2*", "0,1"]


def test_a_node_without_the_huge_page_size_is_a_fault_that_names_all() -> None:
    """MEM-T9."""
    asking = pod("web", container("c", "1Gi", hugepages_2Mi="2Mi"))

    with pytest.raises(MemoryFault) as caught:
        node(2).hints(asking, "c")

    assert str(caught.value) == (
        '[memorymanager] container "c" of pod "web" cannot be placed: NUMA node 0 has no memory '
        'of type "hugepages-2Mi"'
    )


def wrapping(nodes: int) -> MachineState:
    """Books whose first node has an amount that wrapped around (MEM-T10)."""
    machine = dict(books(nodes))
    tables = {"memory": replace(machine[NumaId(0)].tables["memory"], allocatable=UINT64 - GI)}
    machine[NumaId(0)] = replace(machine[NumaId(0)], tables=tables)
    return machine


def test_amounts_that_wrap_around_are_listed_while_masks_are_few() -> None:
    machine = wrapping(10)

    assert compute_hints(machine, {"memory": GI}, {}) == literal_hints(machine, {"memory": GI}, {})


def test_amounts_that_wrap_around_on_too_many_nodes_are_refused() -> None:
    with pytest.raises(MemoryFault, match="17 NUMA nodes have too many masks"):
        compute_hints(wrapping(MOST_NODES + 1), {"memory": GI}, {})


@given(data=st.data(), machine=machines())
def test_described_hints_are_the_listed_ones(data: st.DataObject, machine: MachineState) -> None:
    """F-3: the same masks in the same order with the same flags."""
    resources = data.draw(st.lists(st.sampled_from(["memory", HUGE]), unique=True))
    request = {resource: data.draw(st.integers(0, 25)) for resource in resources}
    subsets = st.sets(st.sampled_from(sorted(machine)), min_size=1).map(mask_of)
    reusable = data.draw(
        st.dictionaries(st.tuples(subsets, st.sampled_from(["memory", HUGE])), st.integers(0, 9))
    )
    columns = columns_of(machine, request)
    assume(adds_up(columns))

    described = described_hints(columns, reusable)

    listed = fitting_hints(columns, reusable)
    assert (() if described is None else expand(described)) == listed
    mask = data.draw(subsets)
    if described is not None:
        assert best_hint(described) == best_hint(listed)
        assert best_hint(described, containing=mask) == best_hint(listed, containing=mask)


@pytest.mark.parametrize(
    ("blocks", "request_", "expected"),
    [
        pytest.param((block(5, 0, 1),), {"memory": 5}, {"memory": (hint(0, 1),)}, id="same"),
        pytest.param((block(5, 0), block(2, 0, resource=HUGE)), {"memory": 5}, None, id="count"),
        pytest.param((block(5, 0),), {HUGE: 5}, None, id="other-type"),
        pytest.param((block(5, 0),), {"memory": 6}, None, id="other-size"),
        pytest.param((block(5, 64),), {"memory": 5}, None, id="node-beyond-a-mask"),
        pytest.param((), {}, {}, id="nothing-stored-and-nothing-asked"),
    ],
)
def test_regeneration(
    blocks: tuple[MemoryBlock, ...], request_: Request, expected: ProviderHints
) -> None:
    assert regenerate_hints(blocks, request_) == expected


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        pytest.param([], None, id="none"),
        pytest.param([hint(3), hint(0, 1)], hint(3), id="narrower"),
        pytest.param([hint(2), hint(1)], hint(1), id="same-count-lower-value"),
        pytest.param([hint(0, preferred=False), hint(1, 2)], hint(1, 2), id="preferred-first"),
    ],
)
def test_best_hint(hints: list[TopologyHint], expected: TopologyHint | None) -> None:
    assert best_hint(tuple(hints)) == expected


def test_hints_of_a_pod_vanish_once_two_containers_are_stored() -> None:
    """MEM-T4."""
    host = node(2)
    two = pod("p", container("a", "2Gi"), container("b", "2Gi"))
    assert listed(host.hints(two)) == ["0*", "1*", "0,1"]
    assert host.allocate(two, "a", hint(0)) is None
    assert host.allocate(two, "b", hint(0)) is None

    assert host.hints(two) is None
    assert listed(host.hints(two, "a")) == ["0*"]


@pytest.mark.parametrize(
    "whole",
    [
        pytest.param(pod("p", container("a", "1Gi"), qos="Burstable"), id="not-guaranteed"),
        pytest.param(pod("p", container("a", "1500m")), id="no-integer"),
        pytest.param(
            pod("p", container("a", "1Gi"), level={"cpu": "2", "memory": "2Gi"}), id="barred"
        ),
    ],
)
def test_no_hints_at_all(whole: Pod) -> None:
    host = node(2)

    assert host.hints(whole) is None
    assert host.hints(whole, "a") is None

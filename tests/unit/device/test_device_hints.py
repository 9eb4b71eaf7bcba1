"""Hints and layouts: tables for the rules, and the rule itself as a slow reference."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.device.device_world import bare, device, hint, ids

from numalign.device.errors import DeviceFault
from numalign.device.hints import HintQuestion, describe, generate, hints
from numalign.device.inventory import Device
from numalign.device.layout import DeviceLayout, is_same_layout, layout_of
from numalign.families.expand import expanded_list
from numalign.model.hint import HintList, TopologyHint
from numalign.model.ids import DeviceId, PodUid
from numalign.model.numa_mask import nodes_of, subsets


def layout(*devices: Device, nodes: tuple[int, ...] = (0, 1)) -> DeviceLayout:
    return layout_of({d.id: d for d in devices}, nodes)


def fault(id_: DeviceId) -> DeviceFault:
    return DeviceFault(pod_uid=PodUid("p"), container="c", resource="r", device=id_)


def ask(
    where: DeviceLayout, request: int, available: str, reusable: str = "", held: str = ""
) -> HintList:
    return hints(
        where,
        HintQuestion(
            request=request,
            held=frozenset(ids(*held)),
            available=frozenset(ids(*available)),
            reusable=frozenset(ids(*reusable)),
        ),
        fault,
    )


A0, B0, C1, D1 = device("a", 0), device("b", 0), device("c", 1), device("d", 1)
FOUR = layout(A0, B0, C1, D1)
BOTH = (hint(0), hint(1), hint(0, 1, preferred=False))


@pytest.mark.parametrize(
    ("where", "question", "expected"),
    [
        pytest.param(layout(bare("a")), (1, "a"), None, id="no-topology-no-preference"),
        pytest.param(layout(device("a")), (1, "a"), None, id="topology-without-nodes"),
        pytest.param(FOUR, (1, "abcd"), BOTH, id="any-node"),
        pytest.param(FOUR, (2, "abc"), (hint(0), hint(0, 1, preferred=False)), id="one-node"),
        pytest.param(FOUR, (2, "ac"), (hint(0, 1, preferred=False),), id="judged-when-empty"),
        pytest.param(FOUR, (3, "abcd"), (hint(0, 1),), id="both-needed"),
        pytest.param(FOUR, (3, "ab"), (), id="too-few"),
        pytest.param(FOUR, (0, ""), BOTH, id="zero-fits-everywhere"),
        pytest.param(FOUR, (1, "abcd", "", "c"), (hint(1), hint(0, 1, preferred=False)), id="held"),
        pytest.param(FOUR, (2, "abcd", "", "c"), (), id="held-another-number"),
        pytest.param(FOUR, (1, "ab", "c"), (hint(1), hint(0, 1, preferred=False)), id="reusable"),
        pytest.param(
            layout(A0, device("x", 0, 1)),
            (1, "x"),
            BOTH,
            id="device-on-two-nodes",
        ),
        pytest.param(layout(A0, bare("x")), (1, "", "x"), (), id="bare-reusable-counts-nothing"),
        pytest.param(
            layout(A0, B0, bare("x")),
            (1, "b", "x"),
            (hint(0),),
            id="bare-reusable-forbids-nothing",
        ),
        pytest.param(layout(A0, device("x")), (1, "a", "x"), (), id="nodeless-reusable-forbids"),
        pytest.param(layout(device("a", 7)), (1, "a"), (), id="unknown-node"),
        pytest.param(layout(device("a", 70)), (1, "a"), (), id="node-beyond-a-mask"),
        pytest.param(
            layout(device("a", 3), nodes=(5, 3)), (1, "a"), (hint(3),), id="sparse-node-ids"
        ),
    ],
)
def test_hints(
    where: DeviceLayout,
    question: tuple[int, str] | tuple[int, str, str] | tuple[int, str, str, str],
    expected: HintList,
) -> None:
    assert ask(where, *question) == expected


@pytest.mark.parametrize(
    "question",
    [
        pytest.param((1, "abcd", "", "z"), id="held"),
        pytest.param((1, "abcd", "z"), id="reusable"),
    ],
)
def test_a_vanished_device_is_a_fault(question: tuple[int, str, str]) -> None:
    with pytest.raises(DeviceFault, match='pod "p" container "c" holds device "z" of resource "r"'):
        ask(FOUR, *question)


def test_a_health_change_keeps_the_layout_and_a_move_does_not() -> None:
    def listed(*devices: Device) -> dict[DeviceId, Device]:
        return {d.id: d for d in devices}

    assert is_same_layout(FOUR, listed(A0, B0, C1, device("d", 1, health="Sick")))
    assert not is_same_layout(FOUR, listed(A0, B0, C1, device("d", 0)))
    assert not is_same_layout(FOUR, listed(A0, B0, C1, bare("d")))
    assert not is_same_layout(FOUR, listed(A0, B0, C1))
    assert not is_same_layout(FOUR, listed(A0, B0, C1, device("e", 1)))


def reference(
    devices: Mapping[DeviceId, Device],
    machine_nodes: tuple[int, ...],
    request: int,
    available: frozenset[DeviceId],
    reusable: frozenset[DeviceId],
) -> tuple[TopologyHint, ...]:
    """DEV-24 step by step, over every mask and every device."""
    bearing = {n for d in devices.values() for n in d.numa_nodes or () if n in machine_nodes}
    nodes = tuple(sorted(bearing)) or machine_nodes
    minimum = len(nodes)
    found = []

    def touches(id_: DeviceId, mask_nodes: tuple[int, ...]) -> bool:
        return any(node in mask_nodes for node in devices[id_].numa_nodes or ())

    for mask in subsets(nodes):
        inside = nodes_of(mask)
        if sum(touches(id_, inside) for id_ in devices) >= request:
            minimum = min(minimum, len(inside))
        counted = [id_ for id_ in reusable if devices[id_].numa_nodes is not None]
        if any(not touches(id_, inside) for id_ in counted):
            continue
        matching = len(counted) + sum(touches(id_, inside) for id_ in available)
        if matching >= request:
            found.append(mask)
    return tuple(TopologyHint(mask, mask.bit_count() == minimum) for mask in found)


node_lists = st.none() | st.lists(st.integers(-1, 5), max_size=3).map(tuple)


@given(
    nodes=st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=True).map(tuple),
    topologies=st.lists(node_lists, max_size=7),
    request=st.integers(0, 5),
    data=st.data(),
)
def test_generation_is_the_rule(
    nodes: tuple[int, ...],
    topologies: list[tuple[int, ...] | None],
    request: int,
    data: st.DataObject,
) -> None:
    devices = {
        DeviceId(f"d{i}"): Device(id=DeviceId(f"d{i}"), numa_nodes=topology)
        for i, topology in enumerate(topologies)
    }
    subset = st.sets(st.sampled_from(sorted(devices))) if devices else st.just(set[DeviceId]())
    available = frozenset(data.draw(subset))
    reusable = frozenset(data.draw(subset)) - available

    generated = generate(layout_of(devices, nodes), request, available, reusable, fault)

    assert generated == reference(devices, nodes, request, available, reusable)


@given(st.data())
def test_described_hints_are_the_listed_ones(data: st.DataObject) -> None:
    """F-2: the same masks in the same order with the same flags."""
    nodes = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True))
    names = "abcdefgh"
    places = st.none() | st.lists(st.integers(0, 11), max_size=3)
    devices = []
    for name in names[: data.draw(st.integers(1, len(names)))]:
        at = data.draw(places)
        devices.append(bare(name) if at is None else device(name, *at))
    where = layout(*devices, nodes=tuple(sorted(nodes)))
    known = st.sets(st.sampled_from([d.id for d in devices]))
    available, reusable = data.draw(known), data.draw(known)
    request = data.draw(st.integers(0, 9))

    described = describe(where, request, available, reusable, fault)

    assert expanded_list(described) == generate(where, request, available, reusable, fault)

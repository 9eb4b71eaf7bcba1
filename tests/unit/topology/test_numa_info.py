"""Distances, their ties, and the machines that lack them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from numalign.errors import StartError
from numalign.model.machine import Machine, NumaNode
from numalign.model.numa_mask import EMPTY, NumaMask, mask_of
from numalign.topology.numa_info import (
    MissingDistance,
    NumaInfo,
    narrowest,
    numa_info,
    reported_distances,
)

FOUR = {0: (10, 11, 20, 20), 1: (11, 10, 20, 20), 2: (20, 20, 10, 12), 3: (20, 20, 12, 10)}


def info_of(distances: Mapping[int, tuple[int, ...]]) -> NumaInfo:
    nodes = tuple(distances)
    return NumaInfo(nodes=nodes, default_mask=mask_of(nodes), distances=distances)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param((), 0.0, id="empty"),
        pytest.param((2,), 10.0, id="one-node-to-itself"),
        pytest.param((0, 2), 15.0, id="diagonal-counts"),
        pytest.param((2, 3), 11.0, id="near"),
        pytest.param((0, 1, 2), 132 / 9, id="not-a-whole-number"),
    ],
)
def test_average_distance(nodes: tuple[int, ...], expected: float) -> None:
    assert info_of(FOUR).average_distance(mask_of(nodes)) == expected


def test_asymmetric_rows_count_both_ways() -> None:
    assert info_of({0: (10, 30), 1: (20, 10)}).average_distance(NumaMask(3)) == 70 / 4


@pytest.mark.parametrize(
    ("masks", "narrow", "close"),
    [
        pytest.param((0b0101, 0b1100), 0b0101, 0b1100, id="distance-decides"),
        pytest.param((0b1100, 0b0010), 0b0010, 0b0010, id="count-decides"),
        pytest.param((0b0101, 0b1001), 0b0101, 0b0101, id="equal-distance"),
        pytest.param((0b1000,), 0b1000, 0b1000, id="only-one"),
    ],
)
def test_fitters(masks: tuple[int, ...], narrow: int, close: int) -> None:
    candidates = [NumaMask(mask) for mask in masks]

    assert narrowest(candidates) == narrow
    assert info_of(FOUR).closest(candidates) == close


SPARSE = {0: (10, 32), 8: (32, 10)}


def test_sparse_ids_with_short_rows_have_no_distance() -> None:
    with pytest.raises(MissingDistance) as caught:
        info_of(SPARSE).average_distance(mask_of((0, 8)))

    assert str(caught.value) == (
        "the distance from NUMA node 0 to NUMA node 8 is not known, "
        "the machine reports 2 distances for NUMA node 0"
    )


@pytest.mark.parametrize(
    ("distances", "nodes", "text"),
    [
        pytest.param(SPARSE, (8,), "from NUMA node 8 to NUMA node 8", id="to-itself"),
        pytest.param({0: ()}, (0,), "reports 0 distances for NUMA node 0", id="empty-row"),
        pytest.param({0: (10,)}, (1,), "reports 0 distances for NUMA node 1", id="no-row"),
    ],
)
def test_what_is_missing_is_named(
    distances: dict[int, tuple[int, ...]], nodes: tuple[int, ...], text: str
) -> None:
    with pytest.raises(MissingDistance, match=text):
        info_of(distances).average_distance(mask_of(nodes))


def test_no_distance_is_asked_for_where_width_decides() -> None:
    assert info_of(SPARSE).closest([mask_of((0, 8)), mask_of((8,))]) == mask_of((8,))


def test_the_empty_mask_needs_no_distance() -> None:
    assert info_of({}).average_distance(EMPTY) == 0.0


def machine(*nodes: NumaNode) -> Machine:
    return Machine(numa_nodes=nodes)


def test_nodes_keep_their_order_and_none_is_left_out() -> None:
    info = numa_info(machine(NumaNode(id=3), NumaNode(id=0), NumaNode(id=7)), {})

    assert info == NumaInfo(nodes=(3, 0, 7), default_mask=NumaMask(0b1000_1001), distances={})


def test_rows_are_kept_by_node_id() -> None:
    reporting = machine(NumaNode(id=4, distances=(10, 20)), NumaNode(id=2, distances=()))

    assert reported_distances(reporting) == {4: (10, 20), 2: ()}


def test_a_node_without_distances_is_refused() -> None:
    with pytest.raises(StartError) as caught:
        reported_distances(machine(NumaNode(id=0, distances=(10,)), NumaNode(id=1)))

    assert caught.value.stage == "topology_manager"
    assert str(caught.value) == (
        "cannot discover NUMA topology: error getting NUMA distances from cadvisor"
    )


def test_a_node_id_beyond_a_mask_is_refused() -> None:
    with pytest.raises(StartError, match="bit number must be in range 0-63"):
        numa_info(machine(NumaNode(id=64)), {})

"""The reserved memory flag, its validation, and what Node Allocatable holds back."""

from __future__ import annotations

import pytest
from tests.unit.memory.memory_builders import GI, MI, quantities

from numalign.errors import ConfigError
from numalign.memory.reserved_config import (
    eviction_bytes,
    node_allocatable_reservation,
    parse_reserved_memory,
    reserved_memory_errors,
)
from numalign.model.ids import NumaId
from numalign.model.quantity import Quantity
from numalign.model.settings import ReservedMemory


def entry(node: int, **limits: str) -> ReservedMemory:
    named = {name.replace("_", "-"): text for name, text in limits.items()}
    return ReservedMemory(numa_node=NumaId(node), limits=quantities(named))


def test_flag_values_accumulate() -> None:
    parsed = parse_reserved_memory(
        ["0:memory=1Gi,hugepages-2Mi=2Mi;1:memory=2Gi", "", "0:memory=3"]
    )

    assert parsed == (
        entry(0, memory="1Gi", hugepages_2Mi="2Mi"),
        entry(1, memory="2Gi"),
        entry(0, memory="3"),
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param(
            "memory=1Gi",
            "the reserved memory has incorrect format, expected "
            "numaNodeID:type=quantity[,type=quantity...], got memory=1Gi",
            id="no-node",
        ),
        pytest.param(
            "0:memory=1Gi;1:a:b",
            "the reserved memory has incorrect format, expected "
            "numaNodeID:type=quantity[,type=quantity...], got 1:a:b",
            id="too-many-parts",
        ),
        pytest.param(
            "x:memory=1Gi",
            "failed to convert the NUMA node ID, expected integer, got x",
            id="node-no-integer",
        ),
        pytest.param(
            "0:memory",
            "the reserved limit has incorrect value, expected type=quantity, got memory",
            id="no-quantity",
        ),
        pytest.param(
            "0:cpu=1",
            'memory type conversion error, unknown type: "cpu"',
            id="other-resource",
        ),
        pytest.param("0:memory=1Gx", "failed to parse the quantity: 1Gx", id="bad-quantity"),
    ],
)
def test_flag_errors(value: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_reserved_memory([value])

    assert str(caught.value) == message


def test_validation_collects_every_error() -> None:
    errors = reserved_memory_errors(
        [entry(0, memory="0", ephemeral_storage="1Gi"), entry(1, memory="1"), entry(0, memory="1")]
    )

    assert errors == (
        (
            'invalid configuration: the limit type "ephemeral-storage" for NUMA node 0 is not '
            "supported, only [memory hugepages-<HugePageSize>] is accepted"
        ),
        (
            "invalid configuration: reserved memory may not be zero for NUMA node 0 and resource "
            '"memory"'
        ),
        (
            "invalid configuration: the reserved memory has a duplicate value for NUMA node 0 and "
            'resource "memory"'
        ),
    )


def test_validation_accepts_huge_pages_of_any_size() -> None:
    assert reserved_memory_errors([entry(0, memory="1Gi", hugepages_16Gi="16Gi")]) == ()


def test_node_allocatable_adds_all_three_and_drops_zeros() -> None:
    reservation = node_allocatable_reservation(
        ["cpu", "memory", "hugepages-2Mi"],
        quantities({"memory": "1Gi", "pid": "5"}),
        quantities({"memory": "1Gi", "cpu": "500m"}),
        Quantity.parse("100Mi"),
    )

    assert {name: str(amount) for name, amount in reservation.items()} == {
        "cpu": "500m",
        "memory": "2148Mi",
    }


@pytest.mark.parametrize(
    ("capacity", "fraction", "expected"),
    [
        pytest.param(1000, 0.5, 500, id="exact"),
        pytest.param(10 * GI, 0.1, 1073741840, id="single-precision-tenth"),
        pytest.param(100 * MI, 0.0, 0, id="zero"),
    ],
)
def test_eviction_share_has_single_precision(capacity: int, fraction: float, expected: int) -> None:
    assert eviction_bytes(capacity, fraction) == expected

"""What the node keeps for itself: summed up as the kubelet does, or stated."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.config.eviction_memory import (
    ThresholdError,
    effective_threshold,
    threshold_quantity,
)
from numalign.config.reservation import Reservation, stated_reservation, summed_reservation
from numalign.config.settings import Settings
from numalign.model.quantity import Quantity

Read = Callable[[str], Settings]


def _amounts(**amounts: str) -> dict[str, Quantity]:
    return {name: Quantity.parse(text) for name, text in amounts.items()}


@pytest.mark.parametrize(
    ("text", "milli_cpu", "memory"),
    [
        pytest.param(
            "{kubeReserved: {cpu: 100m}, systemReserved: {cpu: 200m}}",
            300,
            "100Mi",
            id="the default threshold is held back",
        ),
        pytest.param("evictionHard: {}", None, None, id="no threshold"),
        pytest.param("evictionHard: {nodefs.available: 5%}", None, None, id="another threshold"),
        pytest.param(
            "{evictionHard: {nodefs.available: 5%}, mergeDefaultEvictionSettings: true}",
            None,
            "100Mi",
            id="defaults are merged when asked for",
        ),
        pytest.param("evictionHard: {memory.available: 0%}", None, None, id="0%"),
        pytest.param("evictionHard: {memory.available: 100%}", None, None, id="100%"),
        pytest.param(
            "evictionHard: {memory.available: 5%}", None, str(858993472), id="a share in float32"
        ),
        pytest.param(
            "{kubeReserved: {memory: 1Gi}, systemReserved: {memory: 1Gi},"
            " evictionHard: {memory.available: 1Gi}}",
            None,
            "3Gi",
            id="all three",
        ),
        pytest.param("{kubeReserved: {cpu: '0'}, evictionHard: {}}", None, None, id="zero"),
        pytest.param(
            "{reservedSystemCPUs: 0-3, kubeReserved: {cpu: '7'}, systemReserved: {cpu: '9'},"
            " evictionHard: {}}",
            4000,
            None,
            id="a list replaces both amounts",
        ),
        pytest.param(
            "{reservedSystemCPUs: 0-3, numalign: {nodeAllocatableReservation: {memory: 1Gi}}}",
            4000,
            "1Gi",
            id="stated, with a list",
        ),
        pytest.param(
            "{reservedSystemCPUs: 0-3, numalign: {nodeAllocatableReservation: {cpu: 1500m}}}",
            1500,
            None,
            id="stated against the list",
        ),
        pytest.param(
            "{kubeReserved: {cpu: '1', memory: 1Gi}, numalign: {nodeAllocatableReservation: {}}}",
            None,
            None,
            id="stated as nothing",
        ),
        pytest.param(
            "numalign: {nodeAllocatableReservation: {cpu: 0}}", 0, None, id="stated as zero"
        ),
    ],
)
def test_settings(text: str, milli_cpu: int | None, memory: str | None, settings: Read) -> None:
    read = settings(text)

    assert read.cpu.reserved_milli_cpu == milli_cpu
    assert read.memory.node_allocatable_reservation == (
        {} if memory is None else {"memory": Quantity.parse(memory)}
    )


def test_stated_huge_pages_are_kept_and_storage_is_not() -> None:
    stated = {
        "cpu": Quantity.parse("2"),
        "memory": Quantity.parse("1Gi"),
        "hugepages-1Gi": Quantity.parse("2Gi"),
        "ephemeral-storage": Quantity.parse("1Gi"),
    }

    assert stated_reservation(stated, 0) == Reservation(
        milli_cpu=2000, memory={name: stated[name] for name in ("memory", "hugepages-1Gi")}
    )


@given(
    kube=st.integers(0, 10**6),
    system=st.integers(0, 10**6),
    listed=st.integers(0, 64),
)
def test_summed_cpu(kube: int, system: int, listed: int) -> None:
    reservation = summed_reservation(
        _amounts(cpu=f"{kube}m"), _amounts(cpu=f"{system}m"), None, listed
    )

    expected = listed * 1000 if listed else kube + system
    assert reservation.milli_cpu == (expected or None)
    assert reservation.memory == {}


@given(percent=st.integers(1, 99), capacity=st.integers(0, 1 << 45))
def test_share_is_close_to_the_exact_one(percent: int, capacity: int) -> None:
    quantity = threshold_quantity(f"{percent}%", lambda: capacity)

    assert quantity is not None
    assert quantity.value() == pytest.approx(capacity * percent / 100, rel=1e-6, abs=2)


@pytest.mark.parametrize(
    ("hard", "merge", "expected"),
    [
        pytest.param(None, False, "100Mi", id="nothing given"),
        pytest.param({}, False, "", id="nothing wanted"),
        pytest.param({}, True, "100Mi", id="merged"),
        pytest.param({"memory.available": "1Gi"}, True, "1Gi", id="given goes first"),
    ],
)
def test_effective_threshold(hard: dict[str, str] | None, merge: bool, expected: str) -> None:
    assert effective_threshold(hard, merge) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("-1%", "eviction percentage threshold memory.available must be >= 0%: -1%"),
        ("101%", "eviction percentage threshold memory.available must be <= 100%: 101%"),
        ("1e999%", "eviction percentage threshold memory.available must be <= 100%: 1e999%"),
        ("NaN%", "the percentage NaN% is not a number"),
        (" 5%", "the percentage  5% is not a number"),
        ("0", "eviction threshold memory.available must be positive: 0"),
        ("-1Gi", "eviction threshold memory.available must be positive: -1Gi"),
        ("1Mk", "unable to parse quantity's suffix"),
    ],
)  # fmt: skip
def test_wrong_threshold(value: str, message: str) -> None:
    with pytest.raises(ThresholdError) as wrong:
        threshold_quantity(value, lambda: 0)

    assert str(wrong.value) == message


@pytest.mark.parametrize(
    ("value", "held_back"),
    [
        pytest.param("1e1%", 100, id="exponent"),
        pytest.param("+10%", 100, id="sign"),
        pytest.param(".5%", 4, id="0.005 is a little less in 32 bits"),
        pytest.param("10%%", 100, id="two signs"),
    ],
)
def test_notations_of_a_percentage(value: str, held_back: int) -> None:
    quantity = threshold_quantity(value, lambda: 1000)

    assert quantity is not None
    assert quantity.value() == held_back

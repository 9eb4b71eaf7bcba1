"""From the eviction options to thresholds, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.admission.handlers.eviction_filesystems import with_container_fs
from numalign.admission.handlers.eviction_thresholds import (
    Amount,
    EvictionOptions,
    Threshold,
    parse_thresholds,
)
from numalign.admission.handlers.single_float import parse_single, to_single, truncated
from numalign.errors import ConfigError
from numalign.model.quantity import Quantity


@pytest.mark.parametrize(
    ("options", "error"),
    [
        pytest.param({"hard": {"cpu": "1"}}, "unsupported eviction signal cpu", id="signal"),
        pytest.param(
            {"minimum_reclaim": {"cpu": "1"}},
            "unsupported eviction signal cpu",
            id="reclaim-signal",
        ),
        pytest.param(
            {"hard": {"memory.available": "0"}},
            "eviction threshold memory.available must be positive: 0",
            id="zero",
        ),
        pytest.param(
            {"hard": {"memory.available": "-1%"}},
            "eviction percentage threshold memory.available must be >= 0%: -1%",
            id="negative",
        ),
        pytest.param(
            {"hard": {"memory.available": "101%"}},
            "eviction percentage threshold memory.available must be <= 100%: 101%",
            id="above-all",
        ),
        pytest.param(
            {"soft": {"memory.available": "1Gi"}},
            "grace period must be specified for the soft eviction threshold memory.available",
            id="no-grace",
        ),
        pytest.param(
            {"soft_grace_period": {"memory.available": "-1s"}},
            "invalid eviction grace period specified: -1s, must be a positive value",
            id="negative-grace",
        ),
        pytest.param(
            {"minimum_reclaim": {"memory.available": "-1"}},
            "negative eviction minimum reclaim specified for memory.available",
            id="negative-reclaim",
        ),
        pytest.param(
            {"minimum_reclaim": {"memory.available": "0%"}},
            "eviction percentage minimum reclaim memory.available must be positive: 0%",
            id="zero-reclaim",
        ),
    ],
)
def test_a_wrong_option_stops_the_start(options: dict[str, Any], error: str) -> None:
    """EVI-9, DES-7."""
    with pytest.raises(ConfigError) as refused:
        parse_thresholds(EvictionOptions(**options))

    assert str(refused.value) == error


@pytest.mark.parametrize(
    ("text", "count"),
    [
        pytest.param("0%", 0, id="nothing-disables"),
        pytest.param("100%", 0, id="all-disables"),
        pytest.param("0.0%", 1, id="other-spelling-of-nothing"),
        pytest.param("100.0%", 1, id="other-spelling-of-all"),
        pytest.param("1_0%", 1, id="underscore"),
        pytest.param("NaN%", 1, id="nan"),
    ],
)
def test_only_two_texts_disable(text: str, count: int) -> None:
    """EVI-9."""
    assert len(parse_thresholds(EvictionOptions(hard={"nodefs.available": text}))) == count


def test_hard_memory_is_doubled_for_pods() -> None:
    """EVI-9: a soft threshold without grace counts as hard."""
    thresholds = parse_thresholds(
        EvictionOptions(
            soft={"memory.available": "1Gi"},
            soft_grace_period={"memory.available": "0s"},
            enforce_node_allocatable=["pods"],
        )
    )

    assert [t.signal for t in thresholds] == ["memory.available", "allocatableMemory.available"]


def _hard(signal: str, percent: float = 0.1) -> Threshold:
    return Threshold(signal=signal, value=Amount(percentage=percent))


def test_container_filesystem_follows_node_or_image_filesystem() -> None:
    """EVI-9: overwritten at once, added only afterwards, never met with nothing to copy."""
    own = _hard("containerfs.available", 0.5)
    first, then = with_container_fs(
        [_hard("imagefs.available", 0.2), own], dedicated_image_fs=True, split_container_fs=False
    )

    assert first[1].value == Amount(percentage=0.2)
    assert [t.signal for t in first] == ["imagefs.available", "containerfs.available"]
    added = {(t.signal, t.operator) for t in then[2:]}
    assert added == {("containerfs.available", ""), ("containerfs.inodesFree", "")}


def test_an_unknown_layout_changes_nothing() -> None:
    """EVI-9."""
    given = (_hard("nodefs.available"),)

    assert with_container_fs(given, dedicated_image_fs=False, split_container_fs=True) == (
        given,
        given,
    )


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param("10", 10.0, id="plain"),
        pytest.param("+1e1", 10.0, id="exponent"),
        pytest.param("0x1p3", 8.0, id="hexadecimal"),
        pytest.param("1_0.0_1", to_single(10.01), id="underscores"),
        pytest.param("inf", float("inf"), id="infinite"),
    ],
)
def test_numbers_are_read_as_in_go(text: str, number: float) -> None:
    """EVI-9."""
    assert parse_single(text) == number


@pytest.mark.parametrize(
    "text", ["", " 1", "1 ", "1__0", "_1", "1_", "1_.0", "0x1", "1e99", "\u0661"]
)
def test_other_texts_are_no_numbers(text: str) -> None:
    """EVI-9."""
    with pytest.raises(ValueError, match=r"invalid syntax|out of range"):
        parse_single(text)


@settings(deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_single_is_read_back_exactly(number: float) -> None:
    """EVI-9: the shortest text of a 32-bit float means that float."""
    assert parse_single(repr(number)) == number


def test_what_does_not_fit_becomes_the_smallest_integer() -> None:
    """EVI-10."""
    assert [truncated(x) for x in (1.9, -1.9, 1e30, float("nan"))] == [
        1,
        -1,
        -(1 << 63),
        -(1 << 63),
    ]


def test_quantities_are_kept_as_they_are() -> None:
    """EVI-9."""
    (threshold,) = parse_thresholds(EvictionOptions(hard={"memory.available": "100Mi"}))

    assert threshold.value == Amount(quantity=Quantity.parse("100Mi"))

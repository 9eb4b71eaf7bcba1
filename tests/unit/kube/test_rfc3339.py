from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.kube.core.v1 import core_pb2
from numalign.kube.rfc3339 import format_time, parse_time

_YEAR_1 = -62135596800
_YEAR_9999 = 253402300799


@given(st.integers(_YEAR_1, _YEAR_9999), st.integers(0, 999_999_999))
def test_a_moment_survives_its_text(seconds: int, nanos: int) -> None:
    time = core_pb2.Time(seconds=seconds, nanos=nanos)

    assert parse_time(format_time(time)) == time


@pytest.mark.parametrize(
    ("text", "seconds", "nanos"),
    [
        pytest.param("1970-01-01T00:00:00Z", 0, 0, id="epoch"),
        pytest.param("2024-02-29T12:00:00+02:00", 1709200800, 0, id="east"),
        pytest.param("1969-12-31T19:00:01-05:00", 1, 0, id="west"),
        pytest.param("1970-01-01T00:00:00.5Z", 0, 500_000_000, id="fraction"),
        pytest.param("1970-01-01T00:00:00.1234567899Z", 0, 123_456_789, id="finer-than-nanos"),
    ],
)
def test_parse(text: str, seconds: int, nanos: int) -> None:
    assert parse_time(text) == core_pb2.Time(seconds=seconds, nanos=nanos)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("2024-02-30T00:00:00Z", id="no-such-day"),
        pytest.param("2024-02-01", id="date-only"),
        pytest.param("2024-02-01T00:00:00", id="no-zone"),
        pytest.param("0001-01-01T00:00:00+01:00", id="before-the-calendar"),
        pytest.param("", id="empty"),
    ],
)
def test_texts_that_are_no_time(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_time(text)


def test_a_moment_without_text() -> None:
    with pytest.raises(ValueError, match="is no moment of the calendar"):
        format_time(core_pb2.Time(seconds=1 << 60))

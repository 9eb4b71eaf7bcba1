"""One field taken out of a message's bytes, beside everything that can stand around it."""

from __future__ import annotations

import pytest

from numalign.rpc.wire import field_bytes

ONE = b"\x0a\x02ab"
"""Field 1, with the bytes `ab`."""


@pytest.mark.parametrize(
    ("data", "found"),
    [
        pytest.param(b"", None, id="nothing"),
        pytest.param(ONE, b"ab", id="alone"),
        pytest.param(b"\x0a\x00", b"", id="empty"),
        pytest.param(ONE + b"\x0a\x01c", b"abc", id="twice"),
        pytest.param(b"\x10\x96\x01" + ONE, b"ab", id="after-a-varint"),
        pytest.param(b"\x11" + bytes(8) + ONE, b"ab", id="after-64-bits"),
        pytest.param(b"\x15" + bytes(4) + ONE, b"ab", id="after-32-bits"),
        pytest.param(b"\x12\x04" + ONE + ONE, b"ab", id="not-inside-another-field"),
        pytest.param(b"\x1b" + ONE + b"\x1c", None, id="not-inside-a-group"),
        pytest.param(b"\x1b\x23\x24\x1c" + ONE, b"ab", id="after-nested-groups"),
    ],
)
def test_field(data: bytes, found: bytes | None) -> None:
    assert field_bytes(data, 1) == found


@pytest.mark.parametrize("data", [b"\x0f", b"\x0a", b"\x0a\xff"])
def test_malformed_bytes(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"wire type|truncated"):
        field_bytes(data, 1)

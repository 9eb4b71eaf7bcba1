from __future__ import annotations

import pytest

from numalign.model.quoting import quoted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a b", '"a b"', id="plain"),
        pytest.param("", '""', id="empty"),
        pytest.param('a"b', r'"a\"b"', id="quote"),
        pytest.param("a\\b", r'"a\\b"', id="backslash"),
        pytest.param("\n\t\r\a\b\f\v", r'"\n\t\r\a\b\f\v"', id="named"),
        pytest.param("\x00\x7f", r'"\x00\x7f"', id="control"),
        pytest.param("é１", '"é１"', id="printable"),
        pytest.param("\u2009", r'"\u2009"', id="thin-space"),
        pytest.param("\U000e0001", r'"\U000e0001"', id="beyond-16-bits"),
    ],
)
def test_quoted(text: str, expected: str) -> None:
    assert quoted(text) == expected

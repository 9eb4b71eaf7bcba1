"""The hash itself, by its published test values."""

from __future__ import annotations

import pytest

from numalign.kubelet_files.fnv import fnv1a_32


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", 0x811C9DC5, id="empty"),
        pytest.param("a", 0xE40C292C, id="one-byte"),
        pytest.param("foobar", 0xBF9CF968, id="six-bytes"),
    ],
)
def test_fnv1a_32(text: str, expected: int) -> None:
    assert fnv1a_32(text) == expected


def test_hashes_utf8_bytes() -> None:
    assert fnv1a_32("é") != fnv1a_32("e")
    assert 0 <= fnv1a_32("é" * 100) < 2**32

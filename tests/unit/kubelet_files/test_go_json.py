"""JSON as Go reads and writes it, where it differs from a plain JSON library."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.kubelet_files.errors import UndecodableCheckpoint
from numalign.kubelet_files.go_json import JsonNumber, JsonObject, parse_json, quote_json


def test_members_keep_order_and_repetition_and_numbers_their_spelling() -> None:
    assert parse_json('{"b":1.50,"a":-0,"b":true}') == JsonObject(
        (("b", JsonNumber("1.50")), ("a", JsonNumber("-0")), ("b", True))
    )


@pytest.mark.parametrize("text", ["", "nul", "{}x", "NaN", "-Infinity", "01", '"\t"', "{'a':1}"])
def test_not_json(text: str) -> None:
    with pytest.raises(UndecodableCheckpoint, match=r"^json: "):
        parse_json(text)


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        pytest.param("é", '"é"', id="utf-8"),
        pytest.param("<&>", r'"\u003c\u0026\u003e"', id="html"),
        pytest.param("\u2028\u2029", r'"\u2028\u2029"', id="line-separators"),
        pytest.param('"\\\n\r\t\b\f\x01', r'"\"\\\n\r\t\b\f\u0001"', id="escapes"),
        pytest.param("\ud800x", '"\ufffdx"', id="lone-surrogate"),
    ],
)
def test_quote_json(text: str, literal: str) -> None:
    assert quote_json(text) == literal


@given(st.text())
def test_quoted_text_reads_back(text: str) -> None:
    assert json.loads(quote_json(text)) == text

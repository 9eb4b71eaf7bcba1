"""Quantities against the recordings of the kubelet."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from numalign.model.quantity import Quantity, QuantitySyntaxError, is_whole_cpus

_FILE = Path(__file__).parent / "recordings" / "unit" / "quantity.jsonl.gz"
_CASES: list[dict[str, Any]] = [
    json.loads(line) for line in gzip.decompress(_FILE.read_bytes()).splitlines()
]


def _answer(text: str) -> dict[str, Any]:
    try:
        quantity = Quantity.parse(text)
    except QuantitySyntaxError as error:
        return {"error": str(error)}
    return {
        "value": quantity.value(),
        "milli_value": quantity.milli_value(),
        "as_int64": quantity.as_int64(),
        "sign": quantity.sign(),
        "is_zero": quantity.is_zero(),
        "format": quantity.format.value,
        "canonical": quantity.canonical(),
        "whole_cpus": is_whole_cpus(quantity),
    }


@pytest.mark.parametrize("category", ["valid", "invalid"])
def test_answers_as_recorded(category: str) -> None:
    cases = [case for case in _CASES if case["category"] == category]
    wrong = {
        case["input"]["text"]: (case["expected"], answer)
        for case in cases
        if (answer := _answer(case["input"]["text"])) != case["expected"]
    }

    assert len(cases) > 40
    assert wrong == {}


def test_overflowing_recordings_agree_in_what_does_not_overflow() -> None:
    """There the recorded numbers wrapped around; storage, sign and text did not.

    A canonical text of `1` for 10^21 has lost its suffix, so it is no text of that number.
    """
    kept = ("as_int64", "sign", "is_zero", "format", "canonical")
    cases = [case for case in _CASES if case["category"] == "overflow"]
    wrong = {}
    for case in cases:
        text, expected = case["input"]["text"], case["expected"]
        answer = _answer(text)
        names = [n for n in kept if n != "canonical" or text not in _LOST_SUFFIX]
        wrong.update(
            {(text, n): (expected[n], answer[n]) for n in names if answer[n] != expected[n]}
        )

    assert len(cases) > 20
    assert wrong == {}


_LOST_SUFFIX = ("1000E", "1000000000000000000000000m")

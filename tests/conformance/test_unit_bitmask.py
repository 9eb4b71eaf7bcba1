"""NUMA masks against the recordings of the kubelet (TM-1..TM-6); distances are elsewhere."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from numalign.model import numa_mask
from numalign.model.numa_mask import mask_of, nodes_of

_FILE = Path(__file__).parent / "recordings" / "unit" / "bitmask.jsonl.gz"
_CASES: list[dict[str, Any]] = [
    json.loads(line) for line in gzip.decompress(_FILE.read_bytes()).splitlines()
]


def _new(case: dict[str, Any]) -> dict[str, Any]:
    try:
        mask = mask_of(case["a"])
    except ValueError as error:
        return {"error": str(error)}
    return {
        "nodes": list(nodes_of(mask)),
        "count": numa_mask.count(mask),
        "string": numa_mask.text_of(mask),
        "empty": mask == numa_mask.EMPTY,
    }


def _iterate(case: dict[str, Any]) -> dict[str, Any]:
    return {"masks": [list(nodes_of(mask)) for mask in numa_mask.subsets(case["a"])]}


def _compare(case: dict[str, Any]) -> dict[str, Any]:
    a, b = mask_of(case["a"]), mask_of(case["b"])
    return {
        "equal": a == b,
        "narrower": numa_mask.is_narrower(a, b),
        "less": a < b,
        "greater": a > b,
        "and": list(nodes_of(numa_mask.NumaMask(a & b))),
        "or": list(nodes_of(numa_mask.NumaMask(a | b))),
        "narrowest": list(nodes_of(min(a, b, key=numa_mask.narrowness))),
    }


@pytest.mark.parametrize(
    ("op", "answer"),
    [
        pytest.param("new", _new, id="new"),
        pytest.param("iterate", _iterate, id="iterate"),
        pytest.param("compare", _compare, id="compare"),
    ],
)
def test_answers_as_recorded(op: str, answer: Any) -> None:
    cases = [case for case in _CASES if case["input"]["op"] == op]
    wrong = [
        (case["id"], case["expected"], got)
        for case in cases
        if (got := answer(case["input"])) != case["expected"]
    ]

    assert len(cases) > 5
    assert wrong == []

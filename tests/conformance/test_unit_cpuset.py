"""CPU lists against the recordings of the kubelet (CPU-30)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from numalign.model.cpu_set import CpuSet, CpuSetSyntaxError

_FILE = Path(__file__).parent / "recordings" / "unit" / "cpuset.jsonl.gz"
_CASES: list[dict[str, Any]] = [
    json.loads(line) for line in gzip.decompress(_FILE.read_bytes()).splitlines()
]


def _answer(case: dict[str, Any]) -> dict[str, Any]:
    if case["op"] == "format":
        cpus = CpuSet.of(case["cpus"])
        return {"string": str(cpus), "size": len(cpus)}
    try:
        cpus = CpuSet.parse(case["text"])
    except CpuSetSyntaxError as error:
        return {"error": str(error)}
    return {"cpus": list(cpus), "string": str(cpus), "size": len(cpus)}


@pytest.mark.parametrize("op", ["parse", "format"])
def test_answers_as_recorded(op: str) -> None:
    cases = [case for case in _CASES if case["input"]["op"] == op]
    wrong = [
        (case["id"], case["expected"], answer)
        for case in cases
        if (answer := _answer(case["input"])) != case["expected"]
    ]

    assert len(cases) > 20
    assert wrong == []

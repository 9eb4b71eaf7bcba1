"""The recorded allocated-resources files: meaning, checksum and text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from numalign.kubelet_files.allocation_checkpoint import (
    allocation_hash_input,
    read_allocation_checkpoint,
    write_allocation_checkpoint,
)
from numalign.kubelet_files.errors import CheckpointError
from numalign.kubelet_files.fnv import fnv1a_32

RECORDINGS = Path(__file__).parent / "recordings" / "unit" / "allocation_checkpoint.jsonl"
CASES = [json.loads(line) for line in RECORDINGS.read_text().splitlines()]


def cases(member: str, other: str = "case") -> list[Any]:
    return [pytest.param(c, id=c["case"]) for c in CASES if member in c and other in c]


@pytest.mark.parametrize("case", cases("checksum"))
def test_checksum(case: dict[str, Any]) -> None:
    assert fnv1a_32("(string)" + case["data"]) == case["checksum"]


@pytest.mark.parametrize("case", cases("checksum", "file"))
def test_accepted_file_is_reproduced_byte_for_byte(case: dict[str, Any]) -> None:
    checkpoint = read_allocation_checkpoint(case["file"])

    assert checkpoint.hash_input == "(string)" + case["data"]
    assert allocation_hash_input(checkpoint) == checkpoint.hash_input
    assert write_allocation_checkpoint(checkpoint) == case["file"]


@pytest.mark.parametrize("case", cases("error"))
def test_damaged_file_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError) as refused:
        read_allocation_checkpoint(case["file"])

    assert str(refused.value) == case["error"]


def test_file_of_an_older_release_holds_no_entries() -> None:
    (case,) = [c for c in CASES if c["case"] == "checksum_only_older_layout"]
    text = json.dumps({"data": case["data"], "checksum": case["checksum"]})

    assert read_allocation_checkpoint(text).pods == {}

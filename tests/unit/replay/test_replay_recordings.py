"""A file is known by its records, and what is no recording is refused by file and line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from numalign.replay.recordings import Kind, RecordingError, kind_of, read_recordings


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        pytest.param({"node": {}, "steps": []}, Kind.SCENARIO, id="scenario"),
        pytest.param({"input": {"providers": []}, "expected": {}}, Kind.MERGE, id="merge"),
        pytest.param(
            {"input": {"topology": [], "num_cpus": 1}, "expected": {}},
            Kind.CPU_ASSIGNMENT,
            id="cpu_assignment",
        ),
        pytest.param(
            {"input": {"op": "new", "a": [1]}, "expected": {}}, Kind.BITMASK, id="bitmask"
        ),
        pytest.param(
            {"input": {"op": "parse", "text": "1"}, "expected": {}}, Kind.CPUSET, id="cpuset"
        ),
        pytest.param({"input": {"text": "1"}, "expected": {}}, Kind.QUANTITY, id="quantity"),
        pytest.param(
            {"input": {"manager": "cpu"}, "expected": {}}, Kind.CHECKPOINT, id="checkpoint"
        ),
        pytest.param({"input": {"pod": {}}, "expected": {}}, Kind.POD_RESOURCES, id="pod"),
        pytest.param(
            {"input": {"pod": {}, "other_pods": []}, "expected": {}},
            Kind.PREDICATES,
            id="predicates",
        ),
        pytest.param(
            {"input": {"pod": {}, "failures": []}, "expected": {}}, Kind.PREEMPTION, id="preemption"
        ),
        pytest.param(
            {"input": {"eviction_hard": {}}, "expected": {}},
            Kind.EVICTION_THRESHOLDS,
            id="eviction_thresholds",
        ),
        pytest.param(
            {"input": {"eviction_hard": {}, "steps": []}, "expected": {}},
            Kind.EVICTION_SERIES,
            id="eviction_series",
        ),
        pytest.param(
            {"input": {"pod": {}, "handler": "apparmor"}, "expected": {}},
            Kind.ADMIT_FEATURES,
            id="features",
        ),
        pytest.param({"case": "a", "data": "{}"}, Kind.ALLOCATION_CHECKPOINT, id="allocation"),
    ],
)
def test_kind(record: dict[str, Any], kind: Kind) -> None:
    assert kind_of(record) is kind


def test_plain_and_compressed_files_are_read(tmp_path: Path) -> None:
    text = json.dumps({"id": "q", "input": {"text": "1"}, "expected": {}})
    plain, packed = tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"
    plain.write_text(f"\n{text}\n")
    packed.write_bytes(gzip.compress(text.encode()))

    assert [(r.name, r.line) for r in read_recordings(plain)] == [("q", 2)]
    assert [(r.name, r.line) for r in read_recordings(packed)] == [("q", 1)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param('{"a": 1}', "a.jsonl:1: is a record of no known kind", id="unknown"),
        pytest.param("[1]", "a.jsonl:1: is not a JSON object", id="list"),
        pytest.param("{", "a.jsonl:1: Expecting property name", id="broken"),
        pytest.param("", "a.jsonl: holds no record", id="empty"),
    ],
)
def test_what_is_no_recording_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(text)

    with pytest.raises(RecordingError) as refused:
        list(read_recordings(path))
    assert why in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="cannot be read"):
        list(read_recordings(tmp_path / "none.jsonl"))

"""The command: lines, summary, exit codes, workers."""

from __future__ import annotations

import copy
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from numalign.config.settings import Compatibility
from numalign.replay.command import FAILED, PASSED, UNUSABLE, replay_command

RECORDINGS = Path(__file__).parents[2] / "conformance" / "recordings"


@pytest.fixture(scope="module")
def scenario() -> Any:
    lines = gzip.decompress((RECORDINGS / "scenarios" / "pods.jsonl.gz").read_bytes()).splitlines()
    return next(s for s in map(json.loads, lines) if s["name"] == "pods-partial-failure-none-pod")


def run(tmp_path: Path, *records: Any, **options: Any) -> tuple[int, list[str]]:
    path = tmp_path / "some.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    output = io.StringIO()
    code = replay_command([path], jobs=1, output=output, **options)
    return code, output.getvalue().splitlines()


def test_agreement_is_one_line_and_exit_code_0(tmp_path: Path, scenario: Any) -> None:
    assert run(tmp_path, scenario) == (PASSED, ["1 passed, 0 failed, 0 excused"])


def test_a_difference_is_a_line_and_exit_code_1(tmp_path: Path, scenario: Any) -> None:
    changed = copy.deepcopy(scenario)
    changed["steps"][1]["expect"]["default_cpus"] = "0"

    code, lines = run(tmp_path, changed, scenario)

    assert code == FAILED
    where = f"FAILED {tmp_path}/some.jsonl:1 pods-partial-failure-none-pod"
    what = '.steps[1].expect.default_cpus: "0" recorded, "0,2-8,10-15" replayed'
    assert lines == [f"{where} {what}", "1 passed, 1 failed, 0 excused"]


def test_a_start_error_that_was_not_recorded_fails(tmp_path: Path, scenario: Any) -> None:
    changed = copy.deepcopy(scenario)
    changed["node"]["cpu_manager"]["policy"] = "dynamic"

    code, lines = run(tmp_path, changed)

    assert code == FAILED
    assert any('.construct_error: nothing recorded, "unknown policy' in line for line in lines)


def test_an_unknown_step_makes_the_file_unusable(tmp_path: Path, scenario: Any) -> None:
    changed = copy.deepcopy(scenario)
    changed["steps"][1] = {"op": "wish"}

    code, lines = run(tmp_path, changed)

    assert (code, lines) == (UNUSABLE, ["numalign: unknown step wish"])


def test_workers_give_the_same_in_the_same_order(tmp_path: Path) -> None:
    files = [RECORDINGS / "unit" / "checkpoint.jsonl.gz", RECORDINGS / "unit" / "cpuset.jsonl.gz"]

    def lines(jobs: int) -> tuple[int, str]:
        output = io.StringIO()
        return replay_command(files, jobs=jobs, output=output), output.getvalue()

    code, text = lines(2)

    assert (code, text) == lines(1)
    assert text.endswith("\n193 passed, 0 failed, 17 excused\n")


def test_safe_differences_are_written_allowed_and_needed(tmp_path: Path) -> None:
    packed = (RECORDINGS / "scenarios" / "restart.jsonl.gz").read_bytes()
    refused = next(
        s
        for s in map(json.loads, gzip.decompress(packed).splitlines())
        if s["name"] == "restart-cpu-reserved-grows"
    )
    rows, none = tmp_path / "rows.yaml", tmp_path / "none.yaml"
    none.write_text("{}\n")
    safe: dict[str, Any] = {"compatibility": Compatibility.SAFE}

    assert run(tmp_path, refused, **safe, write_differences=rows)[0] == FAILED
    code, lines = run(tmp_path, refused, **safe, differences_files=[rows])
    assert (code, lines[-1]) == (PASSED, "0 passed, 0 failed, 1 excused")
    assert all("CPU-32" in line for line in lines[:-1])
    assert run(tmp_path, refused, **safe, differences_files=[none])[0] == FAILED
    assert run(tmp_path, refused, differences_files=[rows])[0] == FAILED

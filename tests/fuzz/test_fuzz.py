"""A short fuzz of every parser, and that a fuzz notices what should not happen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.fuzz.catalogue import NAMES, target
from tests.fuzz.tally import Report, Tally
from tests.fuzz.target import Target
from tests.fuzz.with_hypothesis import execute

ROOT = Path(__file__).parents[2]
RUNS = 600


@pytest.mark.parametrize("name", NAMES)
def test_only_documented_errors_come_out(name: str) -> None:
    report = execute(target(name), RUNS, 120.0, 1)

    assert report.unexpected == {}
    # Some inputs are refused and some are read: neither half of a parser is left out.
    assert 0 < sum(report.raised.values()) < report.executions


def test_there_is_a_name_for_every_target() -> None:
    modules = {path.stem for path in (Path(__file__).parent / "targets").glob("*.py")}

    assert modules == set(NAMES)


def test_what_is_not_documented_is_reported_with_its_input() -> None:
    def run(data: bytes) -> None:
        if data == b"bad":
            raise KeyError(data)
        raise ValueError(data)

    tally = Tally(Target(name="t", run=run, documented=(ValueError,), seeds=(b"",)), "none")
    for data in (b"good", b"bad", b"good"):
        tally.execute(data)
    report = tally.finish(1.0)

    assert report.executions == 3
    assert report.raised == {"ValueError": 2}
    assert [(place.split()[0], hex_) for place, hex_ in report.unexpected.items()] == [
        ("KeyError", b"bad".hex())
    ]


def test_the_command_prints_what_it_executed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "--target", "quantity", "--runs", "2000"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    line = done.stdout.splitlines()[-1].split()
    assert line[0] == "quantity"
    assert line[2] == "2,000"
    assert line[5] == "0"
    if line[1] == "atheris":
        assert int(line[4].replace(",", "")) > 20


def test_without_coverage_it_runs_too(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    subprocess.run(
        [sys.executable, "-m", "tests.fuzz.with_hypothesis", "cpu_set", "500", "120", "1", report],
        cwd=ROOT,
        timeout=200,
        check=True,
    )

    assert Report.read(report).executions >= 500
    assert Report.read(report).unexpected == {}

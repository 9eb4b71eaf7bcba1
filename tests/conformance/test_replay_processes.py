"""A sample of the scenarios with each service in a process of its own, over real sockets."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.replay_files import (
    SAMPLE,
    SCENARIO_FILES,
    failure_lines,
    scenarios_named,
)

from numalign.config.settings import Compatibility
from numalign.replay.batches import replay_all
from numalign.replay.recordings import read_recordings
from numalign.replay.worker import Options, memory_directory

NAMES = SAMPLE.read_text(encoding="utf-8").split()


def marks(scenario: dict[str, Any]) -> set[object]:
    """What of a scenario the sample has to have once."""
    found: set[object] = {scenario["topic"], scenario.get("construct_error_stage")}
    for step in scenario["steps"]:
        found |= {step["op"], step.get("plugins"), step.get("start_error_stage")}
        found |= {step.get("containers_running"), *(step.get("node_override") or ())}
        found |= {"panic" in entry.get("expect", {}) for entry in step.get("readmit", ())}
    return found


def test_sample_has_every_topic_step_plugin_timing_and_start_error() -> None:
    recorded = [r.record for path in SCENARIO_FILES for r in read_recordings(path)]
    sampled = [scenario for scenario in recorded if scenario["name"] in NAMES]

    assert len(NAMES) == len(set(NAMES)) == len(sampled) == 60
    assert set().union(*map(marks, sampled)) == set().union(*map(marks, recorded))


@pytest.mark.processes
def test_processes_decide_as_recorded() -> None:
    recordings = scenarios_named(set(NAMES))

    with tempfile.TemporaryDirectory(dir=memory_directory()) as directory:
        options = Options(
            compatibility=Compatibility.KUBELET, processes=True, directory=Path(directory)
        )
        results = list(replay_all(recordings, options, jobs=2))

    assert failure_lines(results) == []
    assert len(results) == len(NAMES)

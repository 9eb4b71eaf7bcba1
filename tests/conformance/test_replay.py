"""Every recording against the services: nothing may differ that the READMEs do not exempt."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance.replay_files import (
    ADMISSION_FILES,
    SCENARIO_FILES,
    UNIT_FILES,
    failure_lines,
    replay_here,
    topic_of,
)

from numalign.config.settings import Compatibility
from numalign.replay.recordings import read_recordings
from numalign.replay.report import summary

EXCUSED = {
    "checkpoint": 17,
    "devices": 6,
    "eviction_thresholds": 8,
    "quantity": 29,
    "random_devices": 17,
    "random_init_sidecar": 16,
    "random_mixed": 18,
    "random_pod_level": 4,
    "random_restart": 14,
    "restart": 1,
}
"""How many recordings of a file agree but for places that are exempted; other files have none."""


@pytest.mark.parametrize("path", UNIT_FILES + SCENARIO_FILES + ADMISSION_FILES, ids=topic_of)
def test_everything_recorded_comes_again(path: Path) -> None:
    results = replay_here(path, Compatibility.KUBELET)

    assert failure_lines(results) == []
    counts = summary(results)
    assert counts.excused == EXCUSED.get(topic_of(path), 0)
    assert counts.passed + counts.excused == len(list(read_recordings(path)))


def test_no_recording_file_is_left_out() -> None:
    assert len(UNIT_FILES) == 8
    assert len(ADMISSION_FILES) == 12
    assert len(SCENARIO_FILES) == 19

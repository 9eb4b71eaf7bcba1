"""A safe node against the recordings: every difference has its row, and every row is needed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance.replay_files import (
    DIFFERENCES,
    SCENARIO_FILES,
    failure_lines,
    replay_here,
    topic_of,
)

from numalign.config.settings import Compatibility
from numalign.document.text import read_document
from numalign.replay.allowed import AllowedDifferences, Row, rows_of
from numalign.replay.recordings import read_recordings

RULES = {"CPU-29", "CPU-32", "CPU-73", "DEV-T11", "MEM-47", "MEM-48", "MEM-74", "TM-52"}
"""The rules of the kubelet that a safe node does not follow, as far as recordings show it."""


@pytest.fixture(scope="module")
def rows() -> tuple[Row, ...]:
    return rows_of(read_document(DIFFERENCES))


@pytest.mark.parametrize("path", SCENARIO_FILES, ids=topic_of)
def test_only_allowed_differences(path: Path, rows: tuple[Row, ...]) -> None:
    results = replay_here(path, Compatibility.SAFE, AllowedDifferences(rows))

    assert failure_lines(results) == []


def test_every_row_is_about_a_recorded_scenario(rows: tuple[Row, ...]) -> None:
    names = {r.name for path in SCENARIO_FILES for r in read_recordings(path)}

    assert {row.scenario for row in rows} <= names


def test_every_row_names_a_known_rule_and_a_reason(rows: tuple[Row, ...]) -> None:
    assert {row.rule for row in rows} == RULES
    assert all(row.reason for row in rows)

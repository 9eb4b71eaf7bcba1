"""The recorded device scenarios with devices of real plugins, in a process of their own."""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path

import pytest
from tests.conformance.replay_files import (
    DIFFERENCES,
    PLUGIN_DIFFERENCES,
    failure_lines,
    scenarios_named,
)

from numalign.config.settings import Compatibility
from numalign.document.text import read_document
from numalign.replay.allowed import AllowedDifferences, rows_of
from numalign.replay.command import PASSED, replay_command
from numalign.replay.worker import Options, memory_directory, replay_batch

SCENARIOS = Path(__file__).parent / "recordings" / "scenarios"

NODES_UNKNOWN = "DEV-T11"
NOT_YET = "DEV-47"

pytestmark = pytest.mark.processes


@pytest.mark.parametrize(
    ("name", "recorded"),
    [pytest.param("devices", 82, id="devices"), pytest.param("restart", 53, id="restarts")],
)
def test_devices_of_real_plugins(name: str, recorded: int) -> None:
    output = io.StringIO()

    code = replay_command(
        [SCENARIOS / f"{name}.jsonl.gz"],
        Compatibility.KUBELET,
        jobs=1,
        output=output,
        plugins=True,
    )

    lines = output.getvalue().splitlines()
    counted = re.fullmatch(r"(\d+) passed, 0 failed, (\d+) excused", lines[-1])
    assert counted is not None, lines[-20:]
    assert code == PASSED
    assert int(counted[1]) + int(counted[2]) == recorded


def test_a_safe_node_differs_over_real_plugins_for_named_causes() -> None:
    """Every scenario in which a cause has to do with plugins, and one without any cause."""
    rows = rows_of(read_document(DIFFERENCES)) + rows_of(read_document(PLUGIN_DIFFERENCES))
    differing = {row.scenario for row in rows if row.rule in (NODES_UNKNOWN, NOT_YET)}
    recordings = scenarios_named({*differing, "dev-unknown-numa-restricted-container"})

    with tempfile.TemporaryDirectory(dir=memory_directory()) as directory:
        options = Options(
            compatibility=Compatibility.SAFE,
            processes=False,
            directory=Path(directory),
            plugins=True,
        )
        results = replay_batch(recordings, options)

    allowed = AllowedDifferences(rows)
    judged = [allowed.judge(result) for result in results]
    assert failure_lines(judged) == []
    assert {result.name for result in judged if result.excused} >= differing
    assert len(results) == len(differing) + 1 == 12


def test_only_waiting_for_plugins_makes_a_difference_that_static_devices_do_not() -> None:
    rows = rows_of(read_document(PLUGIN_DIFFERENCES))

    assert {row.rule for row in rows} == {NOT_YET}
    assert all(row.reason for row in rows)

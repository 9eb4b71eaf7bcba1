"""The recorded device scenarios with devices of real plugins, in a process of their own."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from numalign.config.settings import Compatibility
from numalign.replay.command import PASSED, replay_command

SCENARIOS = Path(__file__).parent / "recordings" / "scenarios"

pytestmark = pytest.mark.processes


@pytest.mark.timeout(300)
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

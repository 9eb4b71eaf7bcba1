"""The demonstration as a user runs it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes


def worked() -> float:
    """The seconds that processes which this one has waited for have worked, all together."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_demo(tmp_path: Path) -> None:
    before = worked()
    done = subprocess.run(
        [sys.executable, "-m", "numalign.cli", "demo"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    seconds = worked() - before

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "training  admitted" in done.stdout
    assert "analytics  rejected  TopologyAffinityError" in done.stdout
    assert "cache  admitted  (dry run: nothing is kept)" in done.stdout
    for hop in ("Admission/Admit", "TopologyManager/Admit", "HintProvider/Allocate"):
        assert hop in done.stdout
    assert list(tmp_path.iterdir()) == []
    assert seconds < 30

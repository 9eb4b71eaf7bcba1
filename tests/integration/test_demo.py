"""The demonstration as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes


def test_demo(tmp_path: Path) -> None:
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "numalign.cli", "demo"],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    seconds = time.monotonic() - started

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "training  admitted" in done.stdout
    assert "analytics  rejected  TopologyAffinityError" in done.stdout
    assert "cache  admitted  (dry run: nothing is kept)" in done.stdout
    for hop in ("Admission/Admit", "TopologyManager/Admit", "HintProvider/Allocate"):
        assert hop in done.stdout
    assert list(tmp_path.iterdir()) == []
    assert seconds < 60

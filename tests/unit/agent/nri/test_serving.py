"""The command: what it takes, and what it refuses to start with."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from numalign_agent.cli.main import cli

WAITS = "Admission has not told yet which pods it has"
PROGRAM = Path(sys.executable).parent / "numalign-agent"


@pytest.fixture
def directory() -> Iterator[Path]:
    """Short, for sockets."""
    path = Path(tempfile.mkdtemp(prefix="nri-", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def config(directory: Path, **agent: object) -> Path:
    path = directory / "config.yaml"
    document = {
        "numalign": {
            "runtimeDirectory": str(directory / "run"),
            "stateDirectory": str(directory / "state"),
            "hostRoot": str(directory / "host"),
            "agent": agent,
        }
    }
    path.write_text(yaml.safe_dump(document))
    return path


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["nri", *arguments])
    return result.exit_code, result.output


def start(path: Path) -> subprocess.CompletedProcess[str]:
    """Start it where it cannot stay."""
    return subprocess.run(
        [PROGRAM, "nri", "--config", path], capture_output=True, text=True, timeout=60, check=False
    )


def test_every_mistake_is_a_line(directory: Path) -> None:
    path = config(directory, nri={"index": "x", "checkInterval": "soon"})
    code, said = run("--config", str(path))

    assert code == 1
    assert "numalign.agent.nri.index: must be two digits" in said
    assert "numalign.agent.nri.checkInterval: must be a duration" in said


def test_options_go_before_the_file_and_are_checked_like_it(directory: Path) -> None:
    code, said = run("--config", str(config(directory)), "--address", "nowhere")

    assert code == 1
    assert 'numalign.agent.nri.address: must be host:port, not "nowhere"' in said


def test_beside_a_kubelet_with_a_static_policy_it_does_not_start(directory: Path) -> None:
    kubelet = directory / "host" / "var/lib/kubelet"
    kubelet.mkdir(parents=True)
    (kubelet / "config.yaml").write_text("kind: KubeletConfiguration\ncpuManagerPolicy: static\n")
    found = start(config(directory))

    assert found.returncode == 1
    assert "second owner: the kubelet's CPU Manager has policy static" in found.stderr


def asked(port: int, path: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    answer = response.status, response.read().decode()
    connection.close()
    return answer


def test_it_waits_says_so_and_stops_and_is_alone(directory: Path) -> None:
    path = config(directory, nri={"address": "127.0.0.1:0"})
    log = directory / "log"
    with log.open("wb") as stream:
        first = subprocess.Popen([PROGRAM, "nri", "--config", path], stderr=stream)
    try:
        while "Admission does not answer" not in log.read_text():
            assert first.poll() is None, log.read_text()
            time.sleep(0.05)
        (port,) = re.findall(r'"port": ?(\d+)', log.read_text())
        pages = [asked(int(port), page) for page in ("/healthz", "/readyz", "/metrics")]
        second = start(path)
    finally:
        first.send_signal(signal.SIGTERM)
        code = first.wait(60)

    assert code == 0
    assert second.returncode == 1
    assert f"nri.lock is held by another process (pid {first.pid})" in second.stderr
    assert "no source of pod specs is configured" in log.read_text()
    assert '"stopped"' in log.read_text()
    assert pages[:2] == [
        (200, "ok"),
        (500, f"[-]runtime failed: {WAITS}\nreadyz check failed\n"),
    ]
    assert "numalign_agent_nri_connected 0.0" in pages[2][1]

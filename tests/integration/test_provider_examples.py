"""docs/writing-a-hint-provider.md, followed to the letter: its commands as processes."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from numalign.kube.core.v1 import core_pb2
from numalign.v1 import types_pb2 as pb
from numalign_client import AdmissionClient

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "writing-a-hint-provider.md"
LICENCE, WAY = "example.com/licence", "example.com/cache-way"

pytestmark = pytest.mark.processes


@pytest.fixture
def directory() -> Iterator[Path]:
    """Where somebody has unpacked numalign, as far as the document goes."""
    made = Path(tempfile.mkdtemp(prefix="na-"))
    (made / "clients").symlink_to(ROOT / "clients")
    (made / "n").mkdir()
    yield made
    shutil.rmtree(made)


def commands() -> list[tuple[list[str], bool]]:
    """The commands of the last console block, and whether each runs in the background."""
    *_, block = re.findall(r"```console\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    programs = {"numalign": [sys.executable, "-m", "numalign.cli"], "python": [sys.executable]}

    def read(line: str) -> tuple[list[str], bool]:
        program, *arguments = shlex.split(line.removeprefix("$ ").removesuffix("&"))
        return [*programs[program], *arguments], line.endswith("&")

    return [read(line) for line in block.splitlines()]


def pod(ways: int, licences: int) -> core_pb2.Pod:
    message = core_pb2.Pod(metadata=core_pb2.ObjectMeta(uid="u", name="p", namespace="default"))
    container = message.spec.containers.add(name="c", image="i")
    container.resources.limits[WAY].string = str(ways)
    container.resources.limits[LICENCE].string = str(licences)
    return message


def test_both_examples_serve_beside_numalign(directory: Path) -> None:
    background = [command for command, stays in commands() if stays]
    (shown,) = [command for command, stays in commands() if not stays]
    # Somebody else may own this machine's CPUs, which the document need not care about.
    (directory / "n" / "config.yaml").write_text("numalign: {secondOwner: tolerate}\n")
    background[0] += ["--config", "n/config.yaml"]
    processes = []
    try:
        for command in background:
            processes.append(subprocess.Popen(command, cwd=directory))
            # A person takes longer than this to type the next line.
            until_there(directory / "n" / "run" / "topology.sock")
        text = listed(shown, directory)
        with AdmissionClient(directory / "n" / "run" / "admission.sock") as numalign:
            answer = numalign.admit(pod(4, 1), timeout=60)
    finally:
        for process in reversed(processes):
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(60) for process in processes]

    assert "licences" in text
    assert "cache-ways" in text
    assert answer.verdict == pb.VERDICT_ADMITTED
    assert {d.resource: list(d.ids) for d in answer.allocations[0].devices} == {
        WAY: ["0/0", "0/1", "0/2", "0/3"],
        LICENCE: ["dongle-0"],
    }
    assert codes == [0, 0, 0]


def until_there(socket: Path) -> None:
    deadline = time.monotonic() + 60
    while not socket.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def listed(command: list[str], directory: Path) -> str:
    """What the command shows, once both providers are there."""
    deadline = time.monotonic() + 60
    environment = {**os.environ, "COLUMNS": "200"}
    while True:
        run = subprocess.run(
            command, cwd=directory, env=environment, capture_output=True, text=True, check=False
        )
        if "licences" in run.stdout and "cache-ways" in run.stdout:
            return run.stdout
        assert time.monotonic() < deadline, run
        time.sleep(0.2)

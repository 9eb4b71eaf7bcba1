"""The node agent in Go: built from its sources, against real services, through their failures."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from tests.e2e.golang import built, unformatted

from numalign_client import AdmissionClient

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "clients" / "examples" / "go-agent"
DEMO = ROOT / "service" / "numalign" / "cli" / "demo"
SECONDS = 60


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(SOURCES, tmp_path_factory.mktemp("go"))


@pytest.fixture
def node() -> Iterator[Node]:
    """The node of the demonstration, not started yet; sockets need a short path."""
    directory = Path(tempfile.mkdtemp(prefix="ng-", dir="/tmp"))
    for name in ("config.yaml", "machine.yaml"):
        shutil.copy(DEMO / name, directory)
    made = Node(directory)
    yield made
    made.kill()
    shutil.rmtree(directory)


class Node:
    """All services in one process."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.socket = directory / "run" / "admission.sock"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "numalign.cli", "serve", "all", "--config", "config.yaml"]
        places = ["--runtime-directory", "run", "--state-directory", "state"]
        self._process = subprocess.Popen([*command, *places], cwd=self.directory)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(SECONDS)
            self._process = None

    def forget(self) -> None:
        shutil.rmtree(self.directory / "state")

    def admitted(self) -> dict[str, str]:
        """The names of the pods that are admitted, with their owners."""
        with AdmissionClient(self.socket) as numalign:
            listed = numalign.list_admissions(timeout=20).admissions
        return {pod.name: pod.owner for pod in listed}


class Agent:
    """A running go-agent, with what it says."""

    def __init__(self, program: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [program, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
        )
        self.lines: list[str] = []
        self._read = 0
        self._changed = threading.Condition()
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(SECONDS)
        self._listener.join(SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self.lines.append(line.rstrip())
                self._changed.notify_all()

    def until(self, part: str) -> list[str]:
        """What it says from here on, up to a line with this text in it."""
        deadline = time.monotonic() + SECONDS
        with self._changed:
            begin = at = self._read
            while True:
                for at in range(self._read, len(self.lines)):
                    if part in self.lines[at]:
                        self._read = at + 1
                        return self.lines[begin : at + 1]
                left = deadline - time.monotonic()
                assert left > 0, (part, self.lines)
                self._changed.wait(left)

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS)


def manifest(directory: Path, name: str, cpus: str, **more: str) -> str:
    resources = {"limits": {"cpu": cpus, "memory": "1Gi", **more}}
    container = {"name": "app", "image": "i", "resources": resources}
    path = directory / f"{name}.json"
    pod = {"kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}
    path.write_text(json.dumps(pod))
    return str(path)


def test_it_is_formatted() -> None:
    assert unformatted(SOURCES) == ""


def test_its_life(program: Path, node: Node) -> None:
    small = manifest(node.directory, "small", "2", **{"example.com/gpu": "1"})
    big = manifest(node.directory, "big", "10")
    with Agent(program, "--socket", str(node.socket), "--deadline", "5s", small, big) as agent:
        agent.until("trying again")
        node.start()
        said = agent.until("watching")
        assert said[0] == "default/small admitted"
        assert said[1] == (
            "  app: CPUs 1,9 of its own, memory 1024Mi on NUMA node 0, example.com/gpu gpu-0"
        )
        assert said[2:4] == ["    cpuset.cpus=1,9", "    cpuset.mems=0"]
        assert said[4] == (
            "default/big rejected (TopologyAffinityError): "
            "Resources cannot be allocated with Topology locality"
        )
        assert "cpu asked 10" in said[5]
        assert node.admitted() == {"small": "go-agent"}

        with AdmissionClient(node.socket) as numalign:
            (pod,) = numalign.list_admissions(timeout=20).admissions
            numalign.release(pod.pod_uid, timeout=20)
        agent.until("default/small was released, but runs here: asking again")
        agent.until("default/small admitted")
        agent.until("cpuset.mems")

        node.kill()
        agent.until("asking about the pods again")
        node.start()
        agent.until("watching")
        assert node.admitted() == {"small": "go-agent"}

        node.kill()
        node.forget()
        node.start()
        agent.until("default/small admitted")
        agent.until("watching")

        assert agent.end() == 0
        agent.until("default/small released")
        assert node.admitted() == {}


def test_what_a_killed_run_left_is_given_back(program: Path, node: Node) -> None:
    first, second = (manifest(node.directory, name, "2") for name in ("first", "second"))
    node.start()
    with Agent(program, "--socket", str(node.socket), first, second) as agent:
        agent.until("watching")
        agent.process.kill()
    with Agent(program, "--socket", str(node.socket), second) as again:
        said = again.until("watching")
        assert said[0] == "default/second admitted before"
        assert any(line.endswith(" released: left by an earlier run") for line in said)
        assert node.admitted() == {"second": "go-agent"}
        assert again.end() == 0


def test_where_nothing_is_admitted(program: Path, node: Node) -> None:
    node.start()
    big = manifest(node.directory, "big", "10")
    with Agent(program, "--socket", str(node.socket), big) as agent:
        agent.until("default/big rejected (TopologyAffinityError)")

        assert agent.process.wait(SECONDS) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "no Pod in JSON"),
        ('{"kind": "Deployment"}', 'kind: must be Pod, not "Deployment"'),
        ('{"kind": "Pod", "metadata": {"name": "p"}}', "spec.containers: must have at least one"),
    ],
    ids=["no JSON", "no pod", "no containers"],
)
def test_what_is_no_manifest(program: Path, tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "pod.json"
    path.write_text(text)
    done = subprocess.run([program, path], capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 1
    assert f"{path}: {said}" in done.stderr

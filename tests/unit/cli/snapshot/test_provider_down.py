"""A node of which one provider is down: the rest is shown, and what is missing is named."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.integration.served_node import ServedNode
from tests.unit.process.observed_world import GPU, document, pod

from numalign.cli.main import cli
from numalign.config.settings import CORE_SERVICES
from numalign.v1 import types_pb2 as pb

pytestmark = pytest.mark.processes

NOT_SHOWN = {
    "cpu": "who has which CPUs on the map, and which are free",
    "memory": "who has which memory, and what of it is free",
    "device": "which devices there are, who has them, and which are free",
}


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedNode]:
    """A node of five processes with pod `a` on it."""
    directory = tmp_path_factory.mktemp("down")
    served = ServedNode(directory)
    written = document(directory, secondOwner="tolerate")
    (directory / "config.yaml").write_text(yaml.safe_dump(written))
    served.start(*(service.value for service in CORE_SERVICES))
    assert served.admit(pod("a", cpu="4")).verdict == pb.VERDICT_ADMITTED
    yield served
    served.stop()


@pytest.fixture(scope="module", params=["cpu", "memory", "device"])
def down(request: pytest.FixtureRequest, processes: ServedNode) -> Iterator[tuple[ServedNode, str]]:
    """The node while one of its providers is down."""
    processes.stop(request.param)
    yield processes, request.param
    processes.start(request.param)


def run(node: ServedNode, *arguments: str) -> Result:
    env = {"NUMALIGN_SOCKET": str(node.directory / "run" / "admission.sock")}
    return CliRunner().invoke(cli, arguments, env=env)


def names_it(text: str, name: str) -> None:
    (line,) = [line for line in text.splitlines() if "not shown" in line]
    assert line.startswith(f"numalign: cannot reach the {name} service at ")
    assert line.endswith(f"; not shown: {NOT_SHOWN[name]}")


def check_snapshot(found: dict[str, Any], name: str) -> None:
    """Everything is in it but the books of one provider."""
    assert [entry["record"]["name"] for entry in found["admissions"]] == ["a"]
    books = {"cpu", "memory", "device"}
    assert {book for book in books if found[book] is not None} == books - {name}
    resources = found["resources"]
    first, second = resources["numaNodes"]
    assert ("cpus" in resources) == (name != "cpu")
    assert ("cpus" in first) == (name != "cpu")
    assert ("memory" in first) == (name != "memory")
    assert ("devices" in first) == (name != "device")
    if name != "cpu":
        # 16 CPUs, 2 of them reserved, 4 with the pod.
        assert resources["cpus"]["free"] == 10
        assert second["largestShape"]["cpus"] == 8
    if name != "device":
        assert [d["resource"] for d in resources["devices"]] == [GPU]


def test_snapshot(down: tuple[ServedNode, str]) -> None:
    node, name = down
    taken = run(node, "snapshot")

    assert taken.exit_code == 1
    names_it(taken.stderr, name)
    check_snapshot(json.loads(taken.stdout), name)


def test_top(down: tuple[ServedNode, str]) -> None:
    node, name = down
    drawn = run(node, "top", "--once")

    assert drawn.exit_code == 1
    names_it(drawn.stderr, name)
    assert "NUMA node 1" in drawn.stdout
    assert "default/a" in drawn.stdout
    assert ("CPUs unknown" if name == "cpu" else "10 CPUs free") in drawn.stdout


def test_status_of_resources(down: tuple[ServedNode, str]) -> None:
    node, name = down
    drawn = run(node, "status", "--resources")

    assert drawn.exit_code == 1
    names_it(drawn.stderr, name)
    rows = {line.split()[1] for line in drawn.stdout.splitlines() if line.startswith(" {0}")}
    rows |= {line.split()[0] for line in drawn.stdout.splitlines() if line.startswith("     ")}
    assert rows == {"cpu", "memory", GPU} - {GPU if name == "device" else name}
    assert ("CPUs unknown" in drawn.stdout) == (name == "cpu")
    assert ("free for exclusive use 10" in drawn.stdout) == (name != "cpu")
    told = run(node, "status", "--resources", "-o", "json")
    assert told.exit_code == 1
    names_it(told.stderr, name)
    assert ("cpus" in json.loads(told.stdout)) == (name != "cpu")


def test_report(down: tuple[ServedNode, str]) -> None:
    node, name = down
    page = run(node, "report", "-o", "-")

    assert page.exit_code == 1
    names_it(page.stderr, name)
    assert f"not shown: {NOT_SHOWN[name]}" in page.stdout
    assert "default/a" in page.stdout


def test_gather(down: tuple[ServedNode, str], tmp_path: Path) -> None:
    node, name = down
    bundle = tmp_path / "b.tar.gz"
    gathered = run(node, "gather", "--to", str(bundle))

    assert gathered.exit_code == 1
    names_it(gathered.stderr, name)
    with tarfile.open(bundle) as archive:
        files = {
            member.name: content.read().decode()
            for member in archive
            if (content := archive.extractfile(member)) is not None
        }
    assert NOT_SHOWN[name] in files["b/problems.txt"]
    assert "default/a" in files["b/report.html"]
    check_snapshot(json.loads(files["b/snapshot.json"]), name)

"""`numalign snapshot` and `numalign simulate` on a node that runs, and on files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.integration.served_node import ServedNode
from tests.unit.cli.conftest import Scripted
from tests.unit.process.observed_world import document

from numalign.cli.main import cli
from numalign.v1 import decisions_pb2 as dc


def manifest(path: Path, name: str, cpu: int, gpu: int = 0) -> str:
    resources = {"cpu": str(cpu), "memory": "1Gi"}
    if gpu:
        resources["example.com/gpu"] = str(gpu)
    container = {"name": "c", "image": "i", "resources": {"limits": resources}}
    file = path / f"{name}.json"
    file.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name},
                "spec": {"containers": [container]},
            }
        )
    )
    return str(file)


def run(node: ServedNode, *arguments: str) -> Result:
    return run_at(node.directory / "run", *arguments)


def run_at(directory: Path, *arguments: str) -> Result:
    """The command as of services whose sockets are in the directory, on a busy machine."""
    env = {"NUMALIGN_SOCKET": str(directory / "admission.sock")}
    return CliRunner().invoke(cli, [*arguments, "--timeout", "300"], env=env)


def verdicts(result: Result) -> list[str]:
    answers = json.loads(result.stdout)["pods"]
    return [entry["decision"]["verdict"].removeprefix("VERDICT_") for entry in answers]


def revision(node: ServedNode) -> Any:
    return json.loads(run(node, "status", "-o", "json").stdout)["admissions"]["revision"]


def test_pods_are_judged_beside_those_before_them_and_nothing_is_kept(
    node: ServedNode, tmp_path: Path
) -> None:
    before = revision(node)
    files = [manifest(tmp_path, "x", 6), manifest(tmp_path, "y", 6), manifest(tmp_path, "z", 2)]
    result = run(node, "simulate", "-o", "json", *files)
    assert verdicts(result) == ["ADMITTED", "REJECTED", "ADMITTED"]
    assert result.exit_code == 3
    assert revision(node) == before
    table = run(node, "simulate", *files).output
    assert "2 of 3 would be admitted; nothing was kept" in table
    assert "in the way of container c: cpu" in table


def test_a_snapshot_stands_for_the_node(node: ServedNode, tmp_path: Path) -> None:
    file = tmp_path / "node.json"
    taken = run(node, "snapshot", "--to", str(file))
    assert (taken.exit_code, taken.stderr) == (0, "")
    assert file.stat().st_mode & 0o777 == 0o600
    pods = [manifest(tmp_path, "x", 6), manifest(tmp_path, "y", 6)]
    offline = ("simulate", "--snapshot", str(file), "-o", "json", *pods)
    live = run(node, "simulate", "-o", "json", *pods)
    away = CliRunner().invoke(cli, offline, env={"NUMALIGN_SOCKET": str(tmp_path / "nobody")})
    answers = [json.loads(r.stdout) for r in (live, away)]
    for answer in answers:
        for entry in answer["pods"]:
            entry["decision"].pop("revision")
    assert answers[0] == answers[1]


RANDOM_PODS = st.lists(
    st.lists(
        st.fixed_dictionaries(
            {
                "cpu": st.sampled_from(["1", "2", "3", "6", "500m"]),
                "memory": st.sampled_from(["512Mi", "1Gi", "6Gi"]),
            },
            optional={"example.com/gpu": st.sampled_from(["1", "2", "9"])},
        ),
        min_size=1,
        max_size=3,
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=5, deadline=None)
@given(
    asked=RANDOM_PODS,
    policy=st.sampled_from(["none", "best-effort", "restricted", "single-numa-node"]),
    scope=st.sampled_from(["container", "pod"]),
)
def test_the_node_says_what_a_copy_here_says(
    node: ServedNode,
    tmp_path_factory: pytest.TempPathFactory,
    asked: list[list[dict[str, str]]],
    policy: str,
    scope: str,
) -> None:
    """Over a snapshot pods are decided on in this process."""
    directory = tmp_path_factory.mktemp("pods")
    manifests = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{i}"},
            "spec": {
                "containers": [
                    {"name": f"c{j}", "image": "i", "resources": {"limits": limits}}
                    for j, limits in enumerate(containers)
                ]
            },
        }
        for i, containers in enumerate(asked)
    ]
    pods = directory / "pods.yaml"
    pods.write_text(yaml.safe_dump_all(manifests))
    taken = directory / "node.json"
    assert run(node, "snapshot", "--to", str(taken)).exit_code == 0
    arguments = ("-o", "json", "--explain", "full", "--policy", policy, "--scope", scope, str(pods))
    theirs = run(node, "simulate", *arguments)
    ours = run(node, "simulate", "--snapshot", str(taken), *arguments)
    assert theirs.exit_code == ours.exit_code, theirs.stderr
    assert theirs.stderr == ours.stderr
    answers = [json.loads(result.stdout) for result in (theirs, ours)]
    for answer in answers:
        for entry in answer["pods"]:
            forget_the_moment(entry)
    assert answers[0] == answers[1]


def forget_the_moment(entry: dict[str, Any]) -> None:
    """Drop what differs from one copy to the next: its revisions, and how long calls took."""
    decision = entry.get("decision", {})
    decision.pop("revision", None)
    decision.get("explanation", {}).pop("calls", None)


def test_admission_alone_is_asked_where_it_can_simulate(node: ServedNode, tmp_path: Path) -> None:
    (tmp_path / "admission.sock").symlink_to(node.directory / "run" / "admission.sock")
    files = [manifest(tmp_path, "x", 6), manifest(tmp_path, "y", 6)]
    result = run_at(tmp_path, "simulate", "-o", "json", *files)
    assert verdicts(result) == ["ADMITTED", "REJECTED"]


def test_a_node_whose_service_is_too_old_is_copied(
    node: ServedNode, tmp_path: Path, scripted: Scripted
) -> None:
    old = scripted("admission", ListDecisions=dc.ListDecisionsResponse())
    for service in ("topology", "cpu", "memory", "device"):
        (tmp_path / f"{service}.sock").symlink_to(node.directory / "run" / f"{service}.sock")
    files = [manifest(tmp_path, "x", 6), manifest(tmp_path, "y", 6)]
    result = run_at(tmp_path, "simulate", "-o", "json", *files)
    assert verdicts(result) == ["ADMITTED", "REJECTED"]
    assert old.requests


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("cpuManagerPolicy: 3", "cpuManagerPolicy: must be text, not 3", id="value"),
        pytest.param("a: [", "config.yaml: line 2, column 1", id="no-yaml"),
    ],
)
def test_what_is_wrong_under_another_configuration(
    node: ServedNode, tmp_path: Path, text: str, said: str
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(text)
    result = run(node, "simulate", "--under", str(config), manifest(tmp_path, "x", 1))
    assert result.exit_code == 1
    assert said in result.stderr


def test_under_another_policy(node: ServedNode, tmp_path: Path) -> None:
    big = manifest(tmp_path, "big", 9)
    assert verdicts(run(node, "simulate", "-o", "json", big)) == ["REJECTED"]
    other = run(node, "simulate", "--policy", "best-effort", "-o", "json", big)
    assert verdicts(other) == ["ADMITTED"]


def test_an_empty_node_on_a_machine_file(tmp_path: Path) -> None:
    written = document(tmp_path)
    machine = tmp_path / "machine.yaml"
    machine.write_text(yaml.safe_dump(written["numalign"].pop("machine")))
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(written))
    pods = [manifest(tmp_path, "x", 8), manifest(tmp_path, "y", 8), manifest(tmp_path, "z", 6, 1)]
    arguments = ("simulate", "--machine", str(machine), "--under", str(config), "-o", "json")
    result = CliRunner().invoke(cli, [*arguments, *pods])
    assert verdicts(result) == ["ADMITTED", "REJECTED", "ADMITTED"]


def test_a_node_object_brings_in_the_whole_chain(node: ServedNode, tmp_path: Path) -> None:
    allocatable = {"cpu": "5", "memory": "8Gi", "pods": "10", "example.com/gpu": "4"}
    described = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }
    file = tmp_path / "node.yaml"
    file.write_text(yaml.safe_dump(described))
    pod_file = manifest(tmp_path, "x", 2)
    result = run(node, "simulate", "--node-object", str(file), "-o", "json", pod_file)
    (entry,) = json.loads(result.stdout)["pods"]
    assert entry["decision"]["reason"] == "OutOfcpu"


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        pytest.param(["--machine", "m", "--snapshot", "s"], 2, "exclude each other", id="both"),
        pytest.param(["--snapshot", "/nonexistent"], 1, "/nonexistent: No such file", id="no-file"),
        pytest.param(["--machine", "/nonexistent"], 1, "/nonexistent", id="no-machine"),
        pytest.param(["--policy", "strict"], 2, "strict", id="policy"),
        pytest.param(["--under", "/nonexistent", "--machine", "/dev/null"], 1, "", id="under"),
    ],
)
def test_bad_input(
    tmp_path: Path, arguments: list[str], code: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMALIGN_SOCKET", str(tmp_path / "nobody.sock"))
    result = CliRunner().invoke(cli, ["simulate", *arguments, manifest(tmp_path, "x", 1)])
    assert result.exit_code == code
    assert text in result.stderr
    assert "Traceback" not in result.stderr


def test_no_service(tmp_path: Path) -> None:
    env = {"NUMALIGN_SOCKET": str(tmp_path / "nobody.sock")}
    result = CliRunner().invoke(cli, ["simulate", manifest(tmp_path, "x", 1)], env=env)
    assert result.exit_code == 1
    assert "cannot reach the topology service" in result.stderr

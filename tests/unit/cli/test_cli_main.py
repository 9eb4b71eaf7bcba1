"""The command as a whole: its help, what it imports, configuration checks, completion."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click import Command, Context
from tests.unit.cli.conftest import Run

from numalign.cli.main import cli

NAMES = cli.list_commands(Context(cli))


def command_of(name: str) -> Command:
    command = cli.get_command(Context(cli), name)
    assert command is not None
    return command


@pytest.mark.parametrize("name", NAMES)
def test_every_command_is_there_and_shows_examples(run: Run, name: str) -> None:
    result = run(name, "--help")

    assert result.exit_code == 0, result.output
    assert f"Examples:\n  {'':<2}" in result.stdout
    assert f"numalign {name}" in result.stdout


@pytest.mark.parametrize("name", NAMES)
def test_the_list_says_what_the_command_does(name: str) -> None:
    command = command_of(name)
    assert command.callback is not None or name == "config"
    text = cli.lazy[name][1] if name in cli.lazy else command.get_short_help_str(limit=100)
    assert text.endswith(".")


def test_help_lists_every_command(run: Run) -> None:
    output = run("--help").stdout
    for name in NAMES:
        assert f"\n  {name} " in output


def test_an_unknown_command(run: Run) -> None:
    assert run("admire").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        pytest.param(["--help"], {"grpc", "rich", "yaml", "google.protobuf"}, id="help"),
        pytest.param(
            ["serve", "--help"], {"grpc", "rich", "yaml", "importlib.metadata"}, id="serve"
        ),
        pytest.param(["admit", "--help"], {"rich"}, id="admit"),
    ],
)
def test_a_command_imports_only_what_it_needs(arguments: list[str], absent: set[str]) -> None:
    script = (
        "import sys\n"
        "from numalign.cli.main import cli\n"
        f"cli({arguments!r}, standalone_mode=False)\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )

    assert absent.isdisjoint(done.stderr.split())


def test_python_dash_m(run: Run) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "numalign.cli", "--version"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert done.stdout == run("--version").stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(run: Run, shell: str) -> None:
    result = run("completion", shell)

    assert result.exit_code == 0
    assert "_NUMALIGN_COMPLETE" in result.stdout
    assert f"{shell}_complete" in result.stdout


def test_serve_refuses_processes_of_one_service(run: Run) -> None:
    result = run("serve", "cpu", "--processes")

    assert result.exit_code == 2
    assert "--processes" in result.stderr


def test_config_check(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        "topologyManagerPolicy: restricted\nfutureKey: 1\n"
        "numalign: {runtimeDirectory: /run/x, stateDirectory: /var/x}\n"
    )
    table = run("config", "check", str(path))
    document = json.loads(run("config", "check", str(path), "-o", "json").stdout)

    assert table.exit_code == 0
    assert "warning: " in table.stdout
    assert "futureKey" in table.stdout
    assert f"{path}: no problems" in table.stdout
    assert "topologyManagerPolicy: restricted" in table.stdout
    assert document["settings"]["numalign"]["endpoints"]["cpu"] == "/run/x/cpu.sock"
    assert len(document["warnings"]) == 1


def test_config_check_names_every_problem(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("topologyManagerPolicy: loose\nnumalign: {queueDepth: 0, what: 1}\n")
    result = run("config", "check", str(path))

    assert result.exit_code == 1
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("numalign: ") for line in lines)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param('allowedUnsafeSysctls: ["net*"]', "not known to be namespaced", id="sysctl"),
        pytest.param("evictionSoft: {memory.available: 1Gi}", "grace period", id="threshold"),
        pytest.param("shutdownGracePeriod: soon", "shutdownGracePeriod", id="shutdown"),
        pytest.param("numalign: {admission: {node: no.yaml}}", "no.yaml", id="node"),
    ],
)
def test_config_check_looks_at_what_only_the_chain_reads(
    run: Run, tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    result = run("config", "check", str(path))

    assert result.exit_code == 1
    assert problem in result.stderr


@pytest.mark.parametrize(
    ("compatibility", "code"), [pytest.param("safe", 1), pytest.param("kubelet", 0)]
)
def test_config_check_holds_devices_to_a_machine_that_is_described(
    run: Run, tmp_path: Path, compatibility: str, code: int
) -> None:
    path = tmp_path / "c.yaml"
    core = {"id": 0, "socket_id": 0, "threads": [0]}
    node = {"id": 0, "memory_bytes": 1 << 30, "distances": [10], "cores": [core]}
    devices = [{"resource": "a.b/c", "devices": [{"id": "x", "numa_nodes": [1]}]}]
    section = {"compatibility": compatibility, "machine": {"numa_nodes": [node]}}
    path.write_text(yaml.safe_dump({"numalign": {**section, "devices": devices}}))
    result = run("config", "check", str(path))

    assert result.exit_code == code
    assert result.stderr == code * (
        'numalign: numalign.devices[0].devices[0].numa_nodes: device "x" is on NUMA node 1, '
        "which is not here\n"
    )


def test_yaml_is_yaml(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("{}")
    document = yaml.safe_load(run("-o", "yaml", "config", "check", str(path)).stdout)

    assert document["settings"]["cpuManagerPolicy"] == "none"


@pytest.mark.parametrize(
    ("given", "used"),
    [pytest.param(None, "ERROR", id="by default"), pytest.param("INFO", "INFO", id="as told")],
)
def test_what_grpc_says_is_settled_before_it_is_imported(given: str | None, used: str) -> None:
    script = (
        "import os, sys\n"
        "from numalign.cli import main\n"
        "assert 'grpc' not in sys.modules\n"
        "main.cli = lambda **_: print(os.environ['GRPC_VERBOSITY'])\n"
        "main.main()\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "GRPC_VERBOSITY"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=environment | ({} if given is None else {"GRPC_VERBOSITY": given}),
    )

    assert done.stdout == f"{used}\n"

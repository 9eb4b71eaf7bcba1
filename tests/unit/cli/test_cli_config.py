"""`numalign config check`: it finds what a start of the services would refuse."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Run

MACHINE = """
numa_nodes:
  - id: 0
    memory_bytes: 8589934592
    distances: [10]
    cores: [{id: 0, socket_id: 0, threads: [0, 1]}, {id: 1, socket_id: 0, threads: [2, 3]}]
"""


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param(
            "{cpuManagerPolicy: static, cpuManagerPolicyOptions: {fast: 'true'},"
            " reservedSystemCPUs: '0'}",
            [
                (
                    "cpuManagerPolicyOptions: cpu_manager: new static policy error: "
                    'unknown CPU Manager Policy option: "fast"'
                )
            ],
            id="option of the CPU manager",
        ),
        pytest.param(
            "{cpuManagerPolicy: static, reservedSystemCPUs: '0,64'}",
            [
                (
                    "reservedSystemCPUs: cpu_manager: new static policy error: [cpumanager] unable "
                    "to build the reserved physical CPUs from the reserved set: unknown CPU ID: 64"
                )
            ],
            id="reserved CPUs that the machine lacks",
        ),
        pytest.param(
            "{cpuManagerPolicy: static}",
            [
                (
                    "reservedSystemCPUs: cpu_manager: [cpumanager] unable to determine reserved "
                    "CPU resources for static policy"
                )
            ],
            id="no reserved CPUs",
        ),
        pytest.param(
            "topologyManagerPolicy: loose\ntopologyManagerPolicyOptions: {deep: 'true'}\n"
            "cpuManagerPolicy: quick\nmemoryManagerPolicy: Free\nnumalign: {validation: managers}",
            [
                (
                    "topologyManagerPolicyOptions.deep: topology_manager: unknown Topology Manager "
                    'Policy option: "deep"'
                ),
                'cpuManagerPolicy: cpu_manager: unknown policy: "quick"',
                'memoryManagerPolicy: memory_manager: unknown policy: "Free"',
            ],
            id="policies that only managers judge",
        ),
        pytest.param(
            "{topologyManagerPolicy: loose, numalign: {validation: managers}}",
            ['topologyManagerPolicy: topology_manager: unknown policy: "loose"'],
            id="policy of the Topology Manager",
        ),
        pytest.param(
            "{memoryManagerPolicy: Static, reservedMemory: [{numaNode: 3, limits: {memory: 1Gi}}]}",
            [
                (
                    "reservedMemory: memory_manager: the reserved memory configuration references "
                    "a NUMA node 3 that does not exist on this machine"
                )
            ],
            id="reserved memory",
        ),
        pytest.param(
            "{numalign: {sockets: {owner: no-such-user, group: no-such-group,"
            " allow: {gids: [0, no-such-group]}}}}",
            [
                'numalign.sockets.owner: there is no user "no-such-user" here',
                'numalign.sockets.group: there is no group "no-such-group" here',
                'numalign.sockets.allow.gids[1]: there is no group "no-such-group" here',
            ],
            id="accounts",
        ),
    ],
)
def test_config_check_finds_what_a_start_would_refuse(
    run: Run, tmp_path: Path, text: str, lines: list[str]
) -> None:
    config, machine = tmp_path / "c.yaml", tmp_path / "machine.yaml"
    config.write_text(text)
    machine.write_text(MACHINE)
    result = run("config", "check", str(config), "--machine", str(machine))

    assert result.exit_code == 1
    assert result.stderr.splitlines() == [f"numalign: {line}" for line in lines]


@pytest.mark.parametrize("key", ["file", "root"])
def test_config_check_names_a_machine_that_is_not_there(run: Run, tmp_path: Path, key: str) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(f"numalign: {{machine: {{{key}: nowhere}}}}")
    result = run("config", "check", str(config))

    assert result.exit_code == 1
    assert f"numalign: numalign.machine.{key}: {tmp_path}/nowhere: " in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_start_says_every_problem_under_its_name(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("topologyManagerPolicy: loose\nnumalign: {queueDepth: 0}\n")
    done = subprocess.run(
        [sys.executable, "-m", "numalign.cli", "serve", "all", "--config", str(config)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 1
    assert done.stderr == run("config", "check", str(config)).stderr
    assert len(done.stderr.splitlines()) == 2

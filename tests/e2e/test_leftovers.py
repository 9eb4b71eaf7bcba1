"""What a killed test has left behind is removed; what is another's stays."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.leftovers import OWNER, cgroup_of, remove_leftovers, remove_leftovers_of

CONTROLLER = "cpuset"


@pytest.fixture
def gone() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait(30)
    return process.pid


@pytest.fixture
def left(gone: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process that was started by one that is gone."""
    process = subprocess.Popen(["sleep", "1000"], env={**os.environ, OWNER: str(gone)})
    yield process
    process.kill()
    process.wait(30)


def test_processes_and_cgroups_of_a_test_that_is_gone(
    tmp_path: Path, gone: int, left: subprocess.Popen[bytes]
) -> None:
    cgroups = tmp_path / "cgroup"
    own = cgroups / CONTROLLER / cgroup_of(gone).strip("/")
    (own / "pod" / "container").mkdir(parents=True)
    remove_leftovers_of(gone, cgroups)

    assert left.wait(30) == -9
    assert not own.exists()


def test_who_is_still_there_keeps_everything(tmp_path: Path) -> None:
    proc, cgroups = tmp_path / "proc", tmp_path / "cgroup"
    for pid in (11, 12):
        (proc / str(pid)).mkdir(parents=True)
    (proc / "12" / "environ").write_bytes(f"PATH=/bin\0{OWNER}=11\0".encode())
    (cgroups / CONTROLLER / "numalign-e2e-11").mkdir(parents=True)
    (cgroups / CONTROLLER / "numalign-e2e-13").mkdir(parents=True)
    (cgroups / CONTROLLER / "numalign-e2e-notes").mkdir(parents=True)
    remove_leftovers(cgroups, proc)

    assert sorted(path.name for path in (cgroups / CONTROLLER).iterdir()) == [
        "numalign-e2e-11",
        "numalign-e2e-notes",
    ]


def test_another_pid_namespace_is_left_alone(tmp_path: Path, gone: int) -> None:
    cgroups = tmp_path / "cgroup"
    own = cgroups / CONTROLLER / cgroup_of(gone).strip("/")
    own.mkdir(parents=True)
    (own / "cgroup.procs").write_text("0\n")
    remove_leftovers_of(gone, cgroups)

    assert own.exists()

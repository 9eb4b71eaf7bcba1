"""`numalign run` as a user has it: real services, real commands, and everybody killed once.

On the machine that the test runs on, whose lowest CPU is reserved. CPUs are enforced by
"""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml
from click.testing import CliRunner

from numalign_agent.cli.run_command import run as run_command
from numalign_client.blocking import AdmissionClient

NUMALIGN = Path(sys.executable).with_name("numalign")
OWN = ("--cpus", "1", "--memory", "16Mi")
A_SECOND = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done"
CPUS = sorted(os.sched_getaffinity(0))

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(len(CPUS) < 2, reason="needs a CPU beside the reserved one"),
]


class Services:
    def __init__(self, directory: Path) -> None:
        self.socket = directory / "run" / "admission.sock"
        config = directory / "numalign.yaml"
        document = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "cpuManagerPolicy": "static",
            "reservedSystemCPUs": str(CPUS[0]),
            "numalign": {
                "runtimeDirectory": str(self.socket.parent),
                "stateDirectory": str(directory / "state"),
                "log": {"level": "error"},
            },
        }
        config.write_text(yaml.safe_dump(document))
        self.process = subprocess.Popen([NUMALIGN, "serve", "all", "--config", config])
        until(self.socket.exists)

    @contextmanager
    def start(self, *arguments: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
        """A run that is under way."""
        command = [str(NUMALIGN), "run", "--socket", str(self.socket), *arguments]
        with subprocess.Popen(command, text=True, **options) as run:
            try:
                yield run
            finally:
                if run.poll() is None:
                    run.kill()

    def run(self, *arguments: str, **options: Any) -> tuple[int, str, str]:
        """A run to its end: exit code, output, errors."""
        with self.start(
            *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
        ) as run:
            out, err = run.communicate(timeout=60)
        return run.returncode, out, err

    def held(self) -> list[str]:
        """The names of the pods that are admitted."""
        with AdmissionClient(self.socket) as client:
            answer = client.list_admissions(timeout=60)
        return [record.name for record in answer.admissions]


T = TypeVar("T")


def until(so: Callable[[], T]) -> T:
    """Wait until something is so; it."""
    deadline = time.monotonic() + 60
    while not (found := so()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with tempfile.TemporaryDirectory(prefix="nr") as directory:
        services = Services(Path(directory))
        yield services
        services.process.terminate()
        assert services.process.wait(60) == 0


def test_a_command_runs_on_cpus_of_its_own_and_gives_them_back(services: Services) -> None:
    code, out, err = services.run(
        *OWN, "--enforce", "affinity", "--", "sh", "-c",
        "grep Cpus_allowed_list /proc/self/status; cat; exit 7", stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert code == 7
    assert out.split()[1] in {str(cpu) for cpu in CPUS[1:]}
    assert "(its own)" in err
    assert "by affinity" in err
    assert services.held() == []


def test_a_command_that_somebody_else_has_moved_is_put_back(services: Services) -> None:
    """It is looked for every ten seconds."""
    command = (*OWN, "-q", "--enforce", "affinity", "--", "sh", "-c", "echo $$; exec sleep 100")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with services.start(*command, **pipes) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline())
        own = os.sched_getaffinity(pid)
        os.sched_setaffinity(pid, {CPUS[0]})
        until(lambda: os.sched_getaffinity(pid) == own)
        run.terminate()
        _, said = run.communicate(timeout=60)

    assert said == f"numalign: put back: process {pid} may run on CPUs {CPUS[0]}\n"


def test_how_a_run_that_cannot_be_ends(services: Services) -> None:
    assert services.run("--quiet", *OWN, "--", "/no/such") == (
        127, "", "numalign: /no/such: No such file or directory\n",
    )  # fmt: skip
    code, _, err = services.run("--cpus", "999", "--memory", "1Mi", "--", "true")
    assert (code, "rejected (" in err) == (125, True)
    with services.start(*OWN, "--quiet", "--name", "first", "--", "sleep", "60") as first:
        until(lambda: services.held() == ["first"])
        code, _, err = services.run("--cpus", str(len(CPUS) - 1), "--memory", "1Mi", "--", "true")
        first.terminate()
        first.wait(timeout=60)
    assert (code, "cpu is held by default/first/run (1)" in err) == (125, True)
    code, _, err = services.run("--device", "example.com/nic=2", "--", "true")
    assert (code, "example.com/nic: 2 asked for, 0 given" in err) == (125, True)
    assert services.held() == []


def test_without_services_it_says_so_at_once(tmp_path: Path) -> None:
    done = subprocess.run(
        [NUMALIGN, "run", "--socket", tmp_path / "none.sock", "--", "true"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 125
    assert f"cannot reach Admission at {tmp_path / 'none.sock'}" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--cpus", "many", "--", "true"], "'--cpus': \"many\" is no quantity"),
        (["--memory", "0", "--", "true"], "'--memory': must be more than 0"),
        (["--device", "nic", "--", "true"], '"nic" must be RESOURCE=N'),
        (["--device", "a/b=x", "--", "true"], "must be a whole number"),
        (["--device", "a/b=1", "--device", "a/b=2", "--", "true"], '"a/b" is given twice'),
        (["--cgroup-parent", "x", "--", "true"], "must be a group such as /numalign"),
        (["--", ""], "its first word is empty"),
        ([], "Missing argument"),
    ],
)
def test_wrong_usage_names_option_and_value(arguments: list[str], why: str) -> None:
    result = CliRunner().invoke(run_command, arguments)
    assert result.exit_code == 2
    assert why in result.output


def test_signals_reach_the_command_once(services: Services) -> None:
    script = f"trap 'echo term' TERM; echo ready; {A_SECOND}; exit 5"
    with services.start("-q", *OWN, "--", "sh", "-c", script, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
        run.send_signal(signal.SIGTERM)
        assert run.stdout.read() == "term\n"
        assert run.wait(60) == 5
    assert services.held() == []


def test_ctrl_c_at_a_terminal_reaches_the_command_once(services: Services) -> None:
    ours, theirs = pty.openpty()
    script = f"trap 'echo int' INT; echo ready; {A_SECOND}; exit 6"
    with services.start(
        "-q", *OWN, "--", "sh", "-c", script, stdin=theirs, stdout=theirs,
        start_new_session=True, preexec_fn=_take_terminal,
    ) as run:  # fmt: skip
        os.close(theirs)
        said = b""
        while b"ready" not in said:
            said += os.read(ours, 1024)
        os.write(ours, b"\x03")
        assert run.wait(60) == 6
    said += os.read(ours, 1024)
    os.close(ours)
    assert said.count(b"int\r\n") == 1


def test_a_run_that_is_killed_is_released_and_its_command_is_killed(services: Services) -> None:
    with services.start(
        "-q", *OWN, "--", "sh", "-c", "sleep 300 & echo $$ $!; wait", stdout=subprocess.PIPE
    ) as run:
        assert run.stdout is not None
        pids = run.stdout.readline().split()
        run.kill()
    until(lambda: services.held() == [])
    until(lambda: not any(map(_lives, pids)))


def test_what_a_run_held_that_was_killed_with_its_keeper_is_released_by_the_next(
    services: Services,
) -> None:
    with services.start(
        "-q",
        *OWN,
        "--name",
        "left",
        "--",
        "sh",
        "-c",
        "echo $$; exec sleep 300",
        stdout=subprocess.PIPE,
    ) as run:
        assert run.stdout is not None
        command = int(run.stdout.readline())
        for pid in _children(run.pid) - {command}:
            os.kill(pid, signal.SIGKILL)
        run.kill()
    assert services.run("-q", "--", "true")[0] == 0
    assert services.held() == ["left"]  # its command runs, and is on these CPUs
    os.kill(command, signal.SIGKILL)
    code, _, err = services.run("-q", "--", "true")
    assert (code, err) == (0, "numalign: released left, which is gone\n")
    assert services.held() == []


def test_shared_runs_leave_cpus_that_another_gets(services: Services) -> None:
    with services.start("-q", "--enforce", "affinity", "--", "sleep", "300") as shared:
        until(lambda: len(services.held()) == 1)
        (command,) = until(lambda: [p for p in _children(shared.pid) if _name(p) == "sleep"])
        until(lambda: os.sched_getaffinity(command) == set(CPUS))
        with services.start(
            "-q", "--enforce", "affinity", *OWN, "--", "sh", "-c", "echo on; cat",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        ) as own:  # fmt: skip
            assert own.stdout is not None
            assert own.stdout.readline() == "on\n"
            until(lambda: len(os.sched_getaffinity(command)) == len(CPUS) - 1)
            own.communicate(timeout=60)
        until(lambda: os.sched_getaffinity(command) == set(CPUS))
        shared.terminate()
        assert shared.wait(60) == 143


def _children(pid: int) -> set[int]:
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def _lives(pid: str) -> bool:
    try:
        return Path("/proc", pid, "stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)

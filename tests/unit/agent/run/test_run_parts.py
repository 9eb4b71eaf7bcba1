from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from numalign_agent.cgroups.choice import Chosen
from numalign_agent.config.enforce import Enforce
from numalign_agent.run.command import memory_prefix
from numalign_agent.run.holder import Holder, Where, can_be_gone, holder_of, where_of
from numalign_agent.run.keeper import devices_lacking, told
from numalign_agent.run.placing import Belonging
from numalign_agent.run.pod import Asked, WrongAmount, checked_amount, pod_document
from numalign_agent.run.tree import here, is_gone, kill_below
from numalign_agent.runners.affinity import AffinityPlacer
from numalign_agent.runners.port import Placement
from numalign_agent.runners.process.shim import start_time
from numalign_client.results import (
    ContainerAllocation,
    ContainerEdits,
    Decision,
    DeviceAllocation,
    Verdict,
)

WHERE = Where("0123456789ab", 4026531836)
ELSEWHERE = Where("0123456789ab", 7)
EARLIER = Where("ba9876543210", 4026531836)


def test_a_uid_names_its_holder() -> None:
    holder = Holder(where_of("01234567-89ab-cdef-0000-000000000000", 4026531836), 42, 1234)
    assert holder.uid == "run-0123456789ab-4026531836-42-1234"
    assert holder_of(holder.uid) == holder


@pytest.mark.parametrize("uid", ["", "run-x", "estimated:u:c", "run-0123456789ab-1-2", "x-run-1"])
def test_a_uid_of_somebody_else_names_nobody(uid: str) -> None:
    assert holder_of(uid) is None


@pytest.mark.parametrize(
    ("where", "gone"),
    [
        pytest.param(WHERE, None, id="here: look"),
        pytest.param(ELSEWHERE, False, id="another namespace: cannot be seen"),
        pytest.param(EARLIER, True, id="an earlier boot"),
    ],
)
def test_who_can_be_gone(where: Where, gone: bool | None) -> None:
    assert can_be_gone(Holder(where, 1, 1), WHERE) is gone


def test_a_process_is_gone_when_it_ended_or_its_number_is_another_ones() -> None:
    child = subprocess.Popen(["sleep", "60"])
    holder = Holder(here(), child.pid, start_time(child.pid))
    assert not is_gone(holder, here())
    assert is_gone(Holder(here(), child.pid, holder.start - 1), here())
    child.kill()
    while not is_gone(holder, here()):
        time.sleep(0.01)
    # It ended, though nobody has waited for it.
    assert child.returncode is None
    child.wait()
    assert is_gone(holder, here())


def test_all_below_a_process_are_killed() -> None:
    child = subprocess.Popen(
        ["sh", "-c", "sleep 60 & echo $!; (trap '' TERM; sleep 60) & echo $!; wait"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    below = [int(child.stdout.readline()) for _ in range(2)]
    kill_below(child.pid)
    assert child.wait(60) == -9
    child.stdout.close()
    deadline = time.monotonic() + 60
    while any(map(_lives, below)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("text", "why"),
    [("x", '"x" is no quantity'), ("0", 'must be more than 0, not "0"'), ("-1", "more than 0")],
)
def test_an_amount_that_makes_no_sense_is_named(text: str, why: str) -> None:
    with pytest.raises(WrongAmount, match=why) as caught:
        checked_amount("cpu", text)
    assert caught.value.resource == "cpu"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/usr/bin/Sim_2.x", "run-sim-2-x-7"),
        ("---", "run-command-7"),
        ("a" * 99, f"run-{'a' * 40}-7"),
    ],
)
def test_a_pod_is_named_after_its_command(command: str, name: str) -> None:
    assert pod_document(Asked([command]), "u", 7)["metadata"]["name"] == name


def test_requests_are_the_limits() -> None:
    asked = Asked(["c"], {"cpu": "2", "example.com/nic": "1"}, name="n", namespace="ns")
    document = pod_document(asked, "u", 7)
    assert document["metadata"] == {"uid": "u", "name": "n", "namespace": "ns"}
    (container,) = document["spec"]["containers"]
    assert container["resources"]["limits"] == {"cpu": "2", "example.com/nic": "1"}
    assert container["resources"]["requests"] == container["resources"]["limits"]


def test_a_run_follows_the_shared_cpus_and_keeps_its_own() -> None:
    shared = Belonging.begun(Placement(cpus="0-7", mems="0"))
    assert shared.move is None
    moved = shared.heard_shared("0-3").move
    assert moved == Placement(cpus="0-3", mems="0")
    own = Belonging.begun(Placement(cpus="4-5", exclusive_cpus=True)).heard_shared("0-3")
    assert own.move is None
    assert own.heard_own("4").move == Placement(cpus="4", exclusive_cpus=True)
    assert own.heard_own("").move == Placement(cpus="0-3")
    assert Belonging.begun(Placement()).heard_own("").move is None


@pytest.mark.parametrize(
    ("placement", "bound", "text"),
    [
        (Placement(), True, "runs on anywhere; by affinity (no groups)"),
        (
            Placement(cpus="1", exclusive_cpus=True, mems="0"),
            False,
            (
                "runs on CPUs 1 (its own), memory of NUMA nodes 0, not enforced: there is no "
                "numactl; by affinity (no groups)"
            ),
        ),
    ],
)
def test_what_is_said_of_the_place(placement: Placement, bound: bool, text: str) -> None:
    chosen = Chosen(AffinityPlacer(), Enforce.AFFINITY, "no groups")
    assert told(placement, chosen, bound=bound) == text


def _two(resource: str) -> DeviceAllocation:
    edits = ContainerEdits(envs={}, mounts=(), device_nodes=(), annotations={}, cdi_devices=())
    return DeviceAllocation(resource=resource, ids=("1", "2"), by_numa_node={}, edits=edits)


def test_devices_that_were_not_given_are_named() -> None:
    asked = Asked(["c"], {"cpu": "1", "a/x": "2", "a/y": "1"})
    allocation = ContainerAllocation(container="run", devices=(_two("a/x"),))
    decision = Decision(pod_uid="u", verdict=Verdict.ADMITTED, allocations=(allocation,))
    (line,) = devices_lacking(asked, decision)
    assert line.startswith("a/y: 1 asked for, 0 given")


def test_memory_is_bound_by_numactl_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert memory_prefix("0-1") == ()
    numactl = tmp_path / "numactl"
    numactl.touch(0o755)
    assert memory_prefix("0-1") == (str(numactl), "--membind=0-1", "--")
    assert memory_prefix("") == ()


# The child forks from a process without threads, which a test's may not be.
_FORK = """
import os, sys
from numalign_agent.run.command import Command, Start
command = Command.fork(sys.argv[2:])
if sys.argv[1] == "give-up":
    command.give_up()
    sys.exit(0)
failure = command.begin(Start(cpus=eval(sys.argv[1]), environment={"GIVEN": "x"}))
if failure:
    print(failure.code, failure.message)
else:
    while (code := command.ended()) is None: pass
    print("ended", code)
"""


@pytest.mark.parametrize(
    ("cpus", "argv", "printed"),
    [
        ("None", ["sh", "-c", "echo $GIVEN; exit 3"], "x\nended 3\n"),
        ("None", ["sh", "-c", "kill -TERM $$"], "ended 143\n"),
        ("None", ["/no/such"], "127 /no/such: No such file or directory\n"),
        ("None", ["/etc/passwd"], "126 /etc/passwd: Permission denied\n"),
        ("(4000,)", ["true"], "125 CPUs [4000]: Invalid argument\n"),
        ("give-up", ["echo", "never"], ""),
    ],
)
def test_a_command_waits_takes_its_place_and_ends(cpus: str, argv: list[str], printed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FORK, cpus, *argv],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=os.environ,
    )
    assert (done.stdout, done.stderr) == (printed, "")

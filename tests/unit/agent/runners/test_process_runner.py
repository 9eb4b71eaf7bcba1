"""Containers as processes: started, ended, found again, and told the truth about."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.unit.agent.made import container, pod

from numalign_agent.pod import AgentPod
from numalign_agent.runners.affinity import AffinityPlacer
from numalign_agent.runners.port import (
    ContainerPhase,
    ContainerRefused,
    Placement,
    RunnerFailed,
    RuntimeContainer,
)
from numalign_agent.runners.process import shim
from numalign_agent.runners.process.directory import ContainerDirectory
from numalign_agent.runners.process.runner import ProcessRunner

LAST_CPU = str(max(os.sched_getaffinity(0)))


def running(*command: str, **fields: Any) -> AgentPod:
    return pod("p", container("c", command=list(command), **fields))


def shell(script: str, **fields: Any) -> AgentPod:
    return running("sh", "-c", script, **fields)


class World:
    def __init__(self, directory: Path, runner: ProcessRunner) -> None:
        self.directory = directory
        self.runner = runner

    async def start(self, of: AgentPod, placement: Placement | None = None) -> str:
        made = await self.runner.create_container(of, "c", 0, placement or Placement())
        await self.runner.start_container(made)
        return made

    async def seen(self, container_id: str) -> RuntimeContainer:
        found = await self.runner.get_pod("uid-p")
        assert found is not None
        (container,) = (c for c in found.containers if c.id == container_id)
        return container

    async def ended(self, container_id: str) -> RuntimeContainer:
        async with asyncio.timeout(60):
            while True:
                seen = await self.seen(container_id)
                if seen.phase is ContainerPhase.EXITED:
                    return seen
                await asyncio.sleep(0.005)

    def written(self, name: str) -> str:
        (path,) = (self.directory / "logs").rglob(name)
        return path.read_text()

    def pid(self, container_id: str) -> int:
        running = ContainerDirectory(self.directory / "containers" / container_id).running()
        assert running is not None
        return running.pid


@asynccontextmanager
async def world(directory: Path) -> AsyncIterator[World]:
    """A runner over a directory; whatever is left running at the end is ended."""
    made = await opened(directory)
    on = World(directory, made)
    try:
        yield on
    finally:
        for found in await on.runner.list_pods():
            for each in found.containers:
                await on.runner.stop_container(each.id, 0.01)
        await on.runner.close()


async def opened(directory: Path) -> ProcessRunner:
    return await ProcessRunner.open(directory / "containers", directory / "logs", AffinityPlacer())


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 - no event says it
            await asyncio.sleep(0.005)


def gone(pid: int) -> bool:
    return not lives(pid)


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_a_container_from_beginning_to_end(tmp_path: Path) -> None:
    told: list[str] = []
    of = shell(
        'echo "$GREETING from $HOSTNAME in $PWD"; echo oh >&2; exit 3',
        workingDir="/tmp",
        env=[{"name": "GREETING", "value": "hello"}],
    )
    async with world(tmp_path) as on:
        on.runner.watch(told.append)
        made = await on.runner.create_container(of, "c", 2, Placement())
        assert (await on.seen(made)).phase is ContainerPhase.CREATED
        await on.runner.start_container(made)
        seen = await on.ended(made)

        assert (seen.exit_code, seen.reason, seen.attempt) == (3, "Error", 2)
        assert seen.finished_at >= seen.started_at > 0
        assert on.written("2.out") == "hello from p in /tmp\n"
        assert on.written("2.err") == "oh\n"
        assert set(told) == {"uid-p"}
        await on.runner.remove_container(made)
        await on.runner.remove_container(made)
        assert await on.runner.list_pods() == []
    assert list((tmp_path / "logs").iterdir()) == list((tmp_path / "containers").iterdir()) == []


@pytest.mark.parametrize(
    ("of", "code", "reason"),
    [
        pytest.param(running("true"), 0, "Completed", id="well"),
        pytest.param(shell("kill -9 $$$$"), 137, "Error", id="by a signal"),
        pytest.param(shell("exit 200"), 200, "Error", id="a large code"),
    ],
)
async def test_exit_codes(of: AgentPod, code: int, reason: str, tmp_path: Path) -> None:
    async with world(tmp_path) as on:
        seen = await on.ended(await on.start(of))

    assert (seen.exit_code, seen.reason) == (code, reason)


@pytest.mark.parametrize(
    ("of", "placement", "message"),
    [
        (running("/no/such/command"), Placement(), "/no/such/command: No such file"),
        (running("/etc/passwd"), Placement(), "/etc/passwd: Permission denied"),
        (running("true", workingDir="/no/where"), Placement(), "/no/where: No such file"),
        (running("true"), Placement(cpus="4093"), "4093"),
        (running("true"), Placement(cpus=f"{LAST_CPU},4093"), "not on this machine"),
    ],
)
async def test_what_cannot_be_started(
    of: AgentPod, placement: Placement, message: str, tmp_path: Path
) -> None:
    async with world(tmp_path) as on:
        with pytest.raises(RunnerFailed, match=message):
            await on.start(of, placement)
        (found,) = await on.runner.list_pods()

    assert (found.containers[0].exit_code, found.containers[0].reason) == (128, "StartError")


async def test_what_is_refused_leaves_nothing(tmp_path: Path) -> None:
    async with world(tmp_path) as on:
        with pytest.raises(ContainerRefused, match="no command"):
            await on.start(running())
        assert await on.runner.list_pods() == []


async def test_a_polite_end(tmp_path: Path) -> None:
    async with world(tmp_path) as on:
        made = await on.start(shell("trap 'echo bye; exit 0' TERM; echo up; sleep 60 & wait"))
        await until(lambda: on.written("0.out") == "up\n")
        await on.runner.stop_container(made, 10)
        seen = await on.seen(made)

        assert (seen.exit_code, seen.reason) == (0, "Completed")
        assert on.written("0.out") == "up\nbye\n"
        await on.runner.stop_container(made, 10)  # not running: fine


async def test_an_end_by_force_takes_everything_that_was_started(tmp_path: Path) -> None:
    async with world(tmp_path) as on:
        made = await on.start(shell("trap '' TERM; sleep 60 & echo $!; wait; wait"))
        await until(lambda: on.written("0.out") != "")
        child = int(on.written("0.out"))
        await on.runner.stop_container(made, 0.05)

        assert (await on.seen(made)).exit_code == 137
        await until(partial(gone, child))


async def test_what_a_container_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    async with world(tmp_path) as on:
        await on.ended(await on.start(shell("sleep 60 & echo $!")))
        child = int(on.written("0.out"))

        await until(partial(gone, child))


async def test_containers_are_put_on_their_cpus_and_moved(tmp_path: Path) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    async with world(tmp_path) as on:
        made = await on.start(shell("sleep 60 & echo $!; wait"), Placement(cpus=str(cpus[-1])))
        await until(lambda: on.written("0.out") != "")
        members = (on.pid(made), int(on.written("0.out")))
        assert [os.sched_getaffinity(pid) for pid in members] == [{cpus[-1]}] * 2

        await on.runner.update_placement(made, Placement(cpus=str(cpus[0])))
        assert [os.sched_getaffinity(pid) for pid in members] == [{cpus[0]}] * 2
        with pytest.raises(RunnerFailed, match="CPUs 4093: Invalid argument"):
            await on.runner.update_placement(made, Placement(cpus="4093"))


async def test_containers_that_were_moved_are_put_back(tmp_path: Path) -> None:
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    place = Placement(cpus=str(last))
    async with world(tmp_path) as on:
        made = await on.start(shell("sleep 60 & echo $!; wait"), place)
        await until(lambda: on.written("0.out") != "")
        child = int(on.written("0.out"))
        assert await on.runner.put_back(made, place) == ""

        os.sched_setaffinity(child, {first})
        found = await on.runner.put_back(made, place)
        assert found == f"process {child} may run on CPUs {first}"
        assert os.sched_getaffinity(child) == {last}

        # Who keeps itself to fewer CPUs than it has may do so.
        os.sched_setaffinity(child, {first})
        assert await on.runner.put_back(made, Placement(cpus=f"{first},{last}")) == ""
        assert os.sched_getaffinity(child) == {first}

        await on.runner.stop_container(made, 0.05)
        assert await on.runner.put_back(made, place) == ""
        assert await on.runner.put_back("unknown", place) == ""


async def test_another_runner_finds_them_again(tmp_path: Path) -> None:
    async with world(tmp_path) as on:
        runs = await on.start(shell("sleep 60"))
        ends = await on.start(shell("sleep 0.2; exit 5"))
        made = await on.runner.create_container(shell("true"), "c", 0, Placement())
        pid = on.pid(runs)
        await on.runner.close()
        await until((tmp_path / "containers" / ends / "exited.json").exists)
        on.runner = await opened(tmp_path)

        assert (await on.seen(runs)).phase is ContainerPhase.RUNNING
        assert (await on.seen(ends)).exit_code == 5
        assert (await on.seen(made)).phase is ContainerPhase.CREATED
        await on.runner.stop_container(runs, 5)
        assert (await on.seen(runs)).exit_code == 143
        assert not lives(pid)


async def test_a_process_whose_shim_was_killed_is_followed_to_its_end(tmp_path: Path) -> None:
    async with world(tmp_path) as on:
        made = await on.start(shell("sleep 60"))
        running = ContainerDirectory(tmp_path / "containers" / made).running()
        assert running is not None
        os.kill(running.shim, signal.SIGKILL)
        assert (await on.seen(made)).phase is ContainerPhase.RUNNING

        await on.runner.stop_container(made, 5)
        seen = await on.ended(made)
        assert (seen.exit_code, seen.reason) == (137, "ContainerStatusUnknown")


async def test_what_ran_before_the_last_boot_is_over(tmp_path: Path) -> None:
    async with world(tmp_path) as on:
        made = await on.start(shell("sleep 60"))
        pid = on.pid(made)
        await on.runner.close()
        path = tmp_path / "containers" / made / "made.json"
        path.write_text(path.read_text().replace(on.runner._boot, "an-earlier-boot"))
        on.runner = await opened(tmp_path)
        seen = await on.seen(made)
        os.kill(pid, signal.SIGKILL)  # it is only said to be of another boot

    assert (seen.phase, seen.exit_code, seen.earlier_boot) == (ContainerPhase.EXITED, 137, True)


async def test_a_container_that_was_given_up_never_starts(tmp_path: Path) -> None:
    """A shim that comes late, after the agent that asked for it has ended."""
    async with world(tmp_path) as on:
        made = await on.runner.create_container(shell("echo ran"), "c", 0, Placement())
        directory = ContainerDirectory(tmp_path / "containers" / made)
        assert directory.give_up("nobody waits for it")
        with pytest.raises(RunnerFailed, match="nobody waits for it"):
            await on.runner.start_container(made)

        await until(lambda: not directory.has_shim())
        assert directory.running() is None


@pytest.mark.parametrize("script", ["sleep 60", "exit 3"])
async def test_a_container_that_started_late_is_not_started_twice(
    script: str, tmp_path: Path
) -> None:
    """Its shim came after the runner had looked: what is known of it is made good."""
    async with world(tmp_path) as on:
        made = await on.runner.create_container(shell(script), "c", 0, Placement())
        path = tmp_path / "containers" / made
        await on.runner._launcher.launch(path)
        if script == "exit 3":
            await until((path / "exited.json").exists)
        assert (await on.seen(made)).phase is ContainerPhase.CREATED

        with pytest.raises(RunnerFailed, match="was started after all"):
            await on.runner.remove_container(made)
        seen = await on.seen(made)
        assert (seen.phase.value, seen.exit_code) in {("running", None), ("exited", 3)}


async def test_what_runs_is_not_removed(tmp_path: Path) -> None:
    async with world(tmp_path) as on:
        made = await on.start(shell("sleep 60"))
        with pytest.raises(RunnerFailed, match="runs"):
            await on.runner.remove_container(made)
        with pytest.raises(RunnerFailed, match="no container unknown"):
            await on.runner.start_container("unknown")
        await on.runner.remove_container("unknown")  # fine


async def test_a_launcher_that_was_killed_is_replaced(tmp_path: Path) -> None:
    async with world(tmp_path) as on:
        await on.ended(await on.start(running("true")))
        launcher = on.runner._launcher._process
        assert launcher is not None
        launcher.kill()
        await launcher.wait()

        assert (await on.ended(await on.start(running("true")))).exit_code == 0


async def test_a_directory_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "containers").write_text("a file")
    with pytest.raises(RunnerFailed, match="containers: File exists"):
        await opened(tmp_path)


async def test_a_runner_whose_directory_is_gone_is_not_ready(tmp_path: Path) -> None:
    async with world(tmp_path) as on:
        assert await on.runner.not_ready() is None
        (tmp_path / "containers").rmdir()
        assert "is gone" in str(await on.runner.not_ready())


_MODULES = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("shim", sys.argv[1])
spec.loader.exec_module(importlib.util.module_from_spec(spec))
print(*sys.modules)
"""


def test_a_shim_loads_little() -> None:
    """It is in memory once for every container."""
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _MODULES, shim.__file__],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()

    assert not {"typing", "pathlib", "subprocess", "asyncio", "logging"} & set(loaded)

"""The whole plugin over a real socket, with a runtime and an Admission that are made up."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.unit.agent.nri.fake_runtime import fake_runtime
from tests.unit.agent.nri.made_up import (
    FakeAdmission,
    FakeApi,
    FakeSpecs,
    container_message,
    pod_message,
)

from numalign.kube.nri.v1alpha1 import api_pb2 as nri
from numalign.model.revision import first_of_record
from numalign.telemetry.metrics import Metrics
from numalign.v1 import admission_pb2 as ad
from numalign_agent.nri.admission import NoAnswer
from numalign_agent.nri.metrics import NRI
from numalign_agent.nri.ownership import Ownership
from numalign_agent.nri.plugin import Plugin
from numalign_agent.nri.pod_specs.port import FirstOf
from numalign_agent.nri.settings import NriSettings, Updates


@pytest.fixture
def directory() -> Any:
    """Short, for sockets."""
    path = Path(tempfile.mkdtemp(prefix="nri-", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


class Running:
    """A plugin that runs, and what it talks to."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.directory = directory
        self.admission = FakeAdmission()
        self.specs = FakeSpecs()
        self.api = FakeApi()
        self.metrics = Metrics(NRI, enabled=True)
        self.slept: list[float] = []
        self.plugin = Plugin(
            admission=self.admission,
            specs=FirstOf([self.specs]),
            api=self.api,
            metrics=self.metrics,
            settings=NriSettings(
                **{
                    "socket": directory / "nri.sock",
                    "check_every": 0.05,
                    "release_after": 0.1,
                    **settings,
                }
            ),
            cgroup_root=directory / "cgroup",
            ownership=Ownership(directory / "owned.json"),
            sleep=self.sleep,
        )

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0.01)

    def cgroup(self, container: nri.Container, cpus: str, mems: str = "0") -> Path:
        """Give a container a cgroup in which the kernel says this."""
        path = self.directory / "cgroup" / container.id
        path.mkdir(parents=True, exist_ok=True)
        (path / "cpuset.cpus.effective").write_text(f"{cpus}\n")
        (path / "cpuset.mems.effective").write_text(f"{mems}\n")
        container.linux.cgroups_path = f"/{container.id}"
        return path / "cpuset.cpus.effective"


@asynccontextmanager
async def running(directory: Path, **settings: Any) -> AsyncIterator[Running]:
    run = Running(directory, **settings)
    task = asyncio.create_task(run.plugin.run())
    try:
        yield run
    finally:
        task.cancel()
        results = await asyncio.gather(task, return_exceptions=True)
        assert all(isinstance(r, asyncio.CancelledError) for r in results), results


async def until(is_so: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(60):
            while not is_so():  # noqa: ASYNC110 - many parts, none of which tells
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(what) from None


async def test_it_registers_and_asks_for_what_old_runtimes_know(directory: Path) -> None:
    async with fake_runtime(directory / "nri.sock") as runtime, running(directory) as run:
        plugin = await runtime.plugin()
        await until(lambda: "nri_connected 1.0" in run.metrics.text(), "connected")

        assert runtime.registered[0] == "90-numalign"
        assert plugin.events == 0b110_1000_1111


async def test_events_over_the_socket_old_and_new(directory: Path) -> None:
    async with fake_runtime(directory / "nri.sock") as runtime, running(directory) as run:
        run.specs.cpus = {"uid-a": 1, "uid-b": 3}
        plugin = await runtime.plugin()
        old = nri.StateChangeEvent(event=nri.RUN_POD_SANDBOX, pod=pod_message("a"))
        await plugin.call("StateChange", old, nri.Empty)
        create = nri.CreateContainerRequest(pod=pod_message("a"), container=container_message("a"))
        created = await plugin.call("CreateContainer", create, nri.CreateContainerResponse)
        with pytest.raises(RuntimeError, match="TopologyAffinityError: no room"):
            await plugin.call(
                "RunPodSandbox",
                nri.RunPodSandboxRequest(pod=pod_message("b")),
                nri.RunPodSandboxResponse,
            )
        unknown = nri.StateChangeEvent(event=nri.VALIDATE_CONTAINER_ADJUSTMENT)
        await plugin.call("StateChange", unknown, nri.Empty)
        for event in (nri.STOP_POD_SANDBOX, nri.REMOVE_POD_SANDBOX):
            change = nri.StateChangeEvent(event=event, pod=pod_message("a"))
            await plugin.call("StateChange", change, nri.Empty)
        await until(lambda: not run.admission.given, "what the pod held is given back")

        assert created.adjust.linux.resources.cpu.cpus == "3"
        assert 'events_total{event="RunPodSandbox",outcome="refused"} 1.0' in run.metrics.text()


async def test_what_runs_already_is_decided_on_and_moved(directory: Path) -> None:
    """The runtime is told by a registration of its own, without having been asked."""
    async with fake_runtime(directory / "nri.sock") as runtime:
        runtime.parts = 2
        for name in ("own", "shared", "big"):
            runtime.has(pod_message(name), container_message(name))
        async with running(directory) as run:
            run.specs.cpus = {"uid-own": 2, "uid-big": 3}
            await until(
                lambda: (
                    runtime.cpus == {"own-app-0": "2-3", "shared-app-0": "0-1", "big-app-0": "0-1"}
                ),
                "everybody is where they should be",
            )
            await until(lambda: len(run.api.warnings) == 4, "all is told")

            assert set(runtime.registered) == {"90-numalign", "90-numalign-updates"}
            assert runtime.unsolicited == []
            assert {(n, r) for n, r, _ in run.api.warnings} == {
                ("big", "TopologyAffinityError"),
                ("own", "ContainerUnpinned"),
                ("shared", "ContainerUnpinned"),
                ("big", "ContainerUnpinned"),
            }


async def test_direct_updates_where_a_runtime_bears_them(directory: Path) -> None:
    async with fake_runtime(directory / "nri.sock") as runtime:
        runtime.has(pod_message("own"), container_message("own"))
        async with running(directory, updates=Updates.DIRECT) as run:
            run.specs.cpus = {"uid-own": 2}
            await until(lambda: runtime.cpus == {"own-app-0": "2-3"}, "it is moved")

            assert ["own-app-0"] in runtime.unsolicited


async def test_a_container_that_strays_is_put_back(directory: Path) -> None:
    async with fake_runtime(directory / "nri.sock") as runtime:
        container = container_message("own")
        runtime.has(pod_message("own"), container)
        async with running(directory) as run:
            run.specs.cpus = {"uid-own": 2}
            kernel = runtime.kernel["own-app-0"] = run.cgroup(container, "0-3")
            await until(lambda: kernel.read_text() == "2-3", "it is placed")
            await until(
                lambda: 'containers{standing="admitted"} 1.0' in run.metrics.text(),
                "it has been looked whether it was",
            )
            kernel.write_text("0-3")
            await until(lambda: kernel.read_text() == "2-3", "it is put back")

            assert [r for _, r, m in run.api.warnings if "0-3, and should use 2-3" in m] == [
                "ContainerUnpinned"
            ]


async def test_the_quota_of_the_pod_is_lifted_too(directory: Path) -> None:
    cgroup = directory / "cgroup"
    pod = cgroup / "kubepods" / "poduid-own"
    (pod / "own-app-0").mkdir(parents=True)
    (cgroup / "cgroup.controllers").write_text("cpuset cpu\n")
    for group in (pod, pod / "own-app-0"):
        # As long as what replaces it: a file that is no kernel's is not cut when it is written.
        (group / "cpu.max").write_text("9 1")
    async with fake_runtime(directory / "nri.sock") as runtime:
        container = container_message("own")
        container.linux.cgroups_path = "/kubepods/poduid-own/own-app-0"
        runtime.has(pod_message("own"), container)
        async with running(directory) as run:
            run.specs.cpus = {"uid-own": 2}
            await until(lambda: (pod / "cpu.max").read_text() == "max", "it is lifted")
            await until(lambda: "quotas_lifted_total 2.0" in run.metrics.text(), "and counted")


async def test_quotas_that_cannot_be_reached_are_told_once(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with fake_runtime(directory / "nri.sock") as runtime:
        runtime.has(pod_message("own"), container_message("own"))
        async with running(directory) as run:
            run.specs.cpus = {"uid-own": 2}
            await until(lambda: runtime.cpus.get("own-app-0") == "2-3", "it is placed")
            await asyncio.sleep(0.3)

    assert capsys.readouterr().err.count("is no cgroup version 2 file system") == 1


async def test_what_the_kernel_refuses_is_told_once(directory: Path) -> None:
    async with fake_runtime(directory / "nri.sock") as runtime:
        container = container_message("own")
        runtime.has(pod_message("own"), container)
        runtime.deaf_to.add("own-app-0")
        async with running(directory) as run:
            run.specs.cpus = {"uid-own": 2}
            run.cgroup(container, "0-3")
            await until(
                lambda: any(reason == "PlacementFailed" for _, reason, _ in run.api.warnings),
                "the failure is shown",
            )
            await asyncio.sleep(0.3)

            assert [r for _, r, _ in run.api.warnings].count("PlacementFailed") == 1
            assert "updates_refused_total 1.0" in run.metrics.text()


async def test_a_runtime_that_comes_later_and_goes_and_comes(directory: Path) -> None:
    async with running(directory) as run:
        await until(lambda: len(run.slept) > 6, "it waits")
        waited = run.slept[:7]
        for _ in range(2):
            async with fake_runtime(directory / "nri.sock") as runtime:
                await runtime.plugin()
                await until(lambda: "nri_connected 1.0" in run.metrics.text(), "it is there")
            await until(lambda: "nri_connected 0.0" in run.metrics.text(), "it is gone")

        assert waited == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0]
        assert "connections_total 2.0" in run.metrics.text()


@pytest.mark.parametrize("what", ["refuse", "mute"])
async def test_a_runtime_that_does_not_take_it(
    directory: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numalign_agent.nri.plugin._SYNCHRONIZE_SECONDS", 0.05)
    async with fake_runtime(directory / "nri.sock") as runtime, running(directory) as run:
        runtime.refuse = "plugin index is taken" if what == "refuse" else ""
        runtime.mute = what == "mute"
        await until(lambda: len(runtime.registered) > 2, "it tries again")

        assert len(run.slept) >= 2


async def test_a_runtime_that_asks_it_to_go(directory: Path) -> None:
    async with fake_runtime(directory / "nri.sock") as runtime, running(directory):
        plugin = await runtime.plugin()
        await plugin.call("Shutdown", nri.Empty(), nri.Empty)
        await plugin.peer.closed()

        assert await runtime.plugin() is not plugin


async def test_it_connects_when_admission_is_known(directory: Path) -> None:
    async with fake_runtime(directory / "nri.sock") as runtime:
        run = Running(directory)
        known = asyncio.Event()
        changes = run.admission.changes

        async def later() -> AsyncIterator[ad.WatchAssignmentsResponse]:
            await known.wait()
            async for event in changes():
                yield event

        run.admission.changes = later  # type: ignore[method-assign]
        task = asyncio.create_task(run.plugin.run())
        await asyncio.sleep(0.1)
        before = list(runtime.registered)
        known.set()
        await runtime.plugin()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

        assert before == []


async def test_pods_wait_for_an_admission_that_is_down(directory: Path) -> None:
    async with fake_runtime(directory / "nri.sock") as runtime:
        runtime.has(pod_message("own"), container_message("own"))
        async with running(directory) as run:
            run.specs.cpus = {"uid-own": 2}
            run.admission.broken = NoAnswer("down")
            await until(lambda: len(run.admission.asked) > 1, "it is asked again")
            meanwhile = dict(runtime.cpus)
            run.admission.broken = None
            await until(lambda: runtime.cpus.get("own-app-0") == "2-3", "it is decided on")

            assert meanwhile == {"own-app-0": "0-3"}


async def test_what_ended_unheard_is_found_and_given_back(directory: Path) -> None:
    """A runtime that was restarted tells nothing of older sandboxes."""
    async with fake_runtime(directory / "nri.sock") as runtime:
        runtime.has(pod_message("own"), container_message("own"))
        runtime.has(pod_message("other"), container_message("other"))
        async with running(directory) as run:
            run.specs.cpus = {"uid-own": 2}
            plugin = await runtime.plugin()
            await until(lambda: "uid-own" in run.admission.given, "it is admitted")
            del runtime.containers[0]
            runtime.pods[0].pid = 0
            stop = nri.StopContainerRequest(
                pod=pod_message("own"), container=container_message("own")
            )
            await plugin.call("StopContainer", stop, nri.StopContainerResponse)
            await until(lambda: "uid-own" not in run.admission.given, "it is given back")


async def test_pods_that_went_while_it_was_away_are_given_back(directory: Path) -> None:
    async with fake_runtime(directory / "nri.sock") as runtime, running(directory) as run:
        run.specs.cpus = {"uid-gone": 2}
        await run.admission.admit({"metadata": {"uid": "uid-gone"}, "spec": {"cpus": 2}}, 1)
        await runtime.plugin()
        await until(lambda: not run.admission.given, "it is given back")


@pytest.mark.parametrize(
    "begins",
    [pytest.param(1, id="lower"), pytest.param(first_of_record(3) + 1, id="higher")],
)
async def test_an_admission_that_lost_its_history_is_asked_again(
    directory: Path, begins: int
) -> None:
    async with fake_runtime(directory / "nri.sock") as runtime:
        runtime.has(pod_message("own"), container_message("own"))
        async with running(directory) as run:
            run.specs.cpus = {"uid-own": 2}
            run.admission.revision = 100
            await until(lambda: runtime.cpus.get("own-app-0") == "2-3", "it is placed")
            asked = len(run.admission.asked)
            run.admission.given.clear()
            for event in (
                ad.WatchAssignmentsResponse(shared_cpus=ad.SharedCpus(cpus="0-3"), revision=begins),
                ad.WatchAssignmentsResponse(synced=ad.Synced(), revision=begins),
            ):
                run.admission.events.put_nowait(event)
            await until(lambda: len(run.admission.asked) > asked, "it is asked again")


async def test_a_fault_of_the_settling_ends_the_plugin(directory: Path) -> None:
    """Nothing goes on half: whoever runs the plugin starts it again."""
    async with fake_runtime(directory / "nri.sock") as runtime:
        run = Running(directory)

        async def stumble(*_: Any) -> Any:
            raise ZeroDivisionError

        run.admission.reconcile = stumble  # type: ignore[assignment, method-assign]
        with pytest.raises(ExceptionGroup) as caught:
            async with asyncio.timeout(60):
                await run.plugin.run()

        assert caught.group_contains(ZeroDivisionError)
        assert runtime.registered

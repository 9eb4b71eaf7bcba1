"""An agent with an API server: its pods, their statuses, mirror pods, preemption and resizes.

The services are a process of their own; the agent runs here over a recorder, so that it can be
seen what it was told to start and to end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.agent_world import NODE, SERVICES, AgentWorld, Zygote, agent_world
from tests.integration.fake_api.server import FakeApiServer, fake_api_server
from tests.integration.fake_api.store import Problem

from numalign_agent.assembly.agent import open_agent
from numalign_agent.config.loading import load_settings
from numalign_agent.loop import sync_loop
from numalign_agent.runners.recorder import RecorderRunner

pytestmark = pytest.mark.processes


class World:
    def __init__(self, node: AgentWorld, server: FakeApiServer, runner: RecorderRunner) -> None:
        self.node = node
        self.server = server
        self.runner = runner

    def bind(self, name: str, cpu: str, **spec: Any) -> dict[str, Any]:
        """A pod that was scheduled to this node."""
        amounts = {"cpu": cpu, "memory": "1Gi"}
        container = {
            "name": "c",
            "image": "i",
            "command": ["x"],
            "resources": {"requests": amounts},
        }
        made = {
            "metadata": {"name": name},
            "spec": {"nodeName": NODE, "containers": [container], **spec},
            "status": {"phase": "Pending"},
        }
        return self.server.store.create("pods", "default", made)

    def status(self, name: str) -> dict[str, Any]:
        """What the API server says of a pod; empty for one that is not there."""
        try:
            status: dict[str, Any] = self.server.store.get("pods", "default", name)["status"]
        except (Problem, KeyError):
            return {}
        return status

    def phase(self, name: str) -> str:
        return str(self.status(name).get("phase", "gone"))

    def events(self, reason: str) -> list[str]:
        """The pods that have such an event."""
        return [
            event["involvedObject"]["name"]
            for event in self.server.store.all("events")
            if event["reason"] == reason
        ]

    async def until(self, expected: object, seen: Callable[[], object]) -> None:
        """Wait until `seen` returns what is expected."""
        last: object = None
        try:
            async with asyncio.timeout(60):
                while True:
                    last = seen()
                    if last == expected:
                        return
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"expected {expected}, but saw {last}") from None

    def told(self, what: str) -> list[str]:
        """The pods whose containers the recorder was told to start, stop, ..."""
        return [told.pod_uid for told in self.runner.told if told.what == what]


@asynccontextmanager
async def world(
    zygote: Zygote, directory: Path, cpu: str = "14", **services: Any
) -> AsyncIterator[World]:
    allocatable = {"cpu": cpu, "memory": "31Gi", "pods": "20"}
    node_object = {
        "metadata": {"name": NODE, "labels": {"kubernetes.io/os": "linux"}},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }
    # Of this host nothing is read, so that it is under no pressure.
    (directory / "root").mkdir()
    async with (
        fake_api_server() as server,
        agent_world(
            zygote,
            directory,
            services={"hostRoot": str(directory / "root"), **services},
            api={"kubeconfig": str(directory / "kubeconfig")},
            runner="recorder",
        ) as node,
    ):
        server.kubeconfig(directory / "kubeconfig")
        server.store.create("nodes", "", node_object)
        node.write()
        node.start(SERVICES)
        runner = RecorderRunner()
        settings = load_settings(node.config, {})
        async with open_agent(settings, runner=runner) as agent:
            running = asyncio.create_task(agent.run())
            yield World(node, server, runner)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync_loop, "SYNC_SECONDS", 0.1)
    monkeypatch.setattr(sync_loop, "HOUSEKEEPING_SECONDS", 0.2)


async def test_a_pod_of_the_api_server_from_its_binding_to_its_deletion(
    zygote: Zygote, directory: Path
) -> None:
    async with world(zygote, directory) as on:
        made = on.bind("web", "2")
        on.bind("big", "15")
        await on.until("Running", lambda: on.phase("web"))
        await on.until("Failed", lambda: on.phase("big"))

        assert on.status("big")["reason"] == "OutOfcpu"
        assert on.status("big")["message"].startswith("Pod was rejected: Node didn't have enough")
        assert "conditions" not in on.status("big") or not on.status("big")["conditions"]
        assert on.status("web")["qosClass"] == "Burstable"
        await on.until(["big"], lambda: on.events("OutOfcpu"))
        await on.until(["web"], lambda: on.events("Started"))

        for name in ("web", "big"):
            on.server.store.delete("pods", "default", name, {})
        await on.until(["gone", "gone"], lambda: [on.phase("web"), on.phase("big")])
        assert on.told("stop") == [made["metadata"]["uid"]]
        await on.until([], lambda: list(on.node.rows()))
        await on.node.settled(set())


async def test_a_static_pod_takes_the_place_of_less_important_ones(
    zygote: Zygote, directory: Path
) -> None:
    """PRE-8: victims are ended, released, and say why; the static pod has a mirror."""
    async with world(zygote, directory, cpu="4") as on:
        victim = on.bind("victim", "3")
        on.bind("bystander", "500m")
        await on.until("Running", lambda: on.phase("victim"))
        await on.until("Running", lambda: on.phase("bystander"))
        amounts = {"requests": {"cpu": "2", "memory": "1Gi"}}
        on.node.write(on.node.pod("critical", on.node.container("c", resources=amounts)))
        await on.until("Running", lambda: on.phase(f"critical-{NODE}"))

        status = on.status("victim")
        assert (status["phase"], status["reason"]) == ("Failed", "Preempting")
        assert status["message"] == "Preempted in order to admit critical pod"
        (condition,) = (c for c in status["conditions"] if c["type"] == "DisruptionTarget")
        assert condition["reason"] == "TerminationByKubelet"
        assert on.told("stop") == [victim["metadata"]["uid"]]
        assert on.phase("bystander") == "Running"
        await on.until(["victim"], lambda: on.events("Preempting"))
        await on.node.settled({"bystander", "critical"})
        mirror = on.server.store.get("pods", "default", f"critical-{NODE}")
        assert mirror["metadata"]["ownerReferences"][0]["name"] == NODE

        on.node.remove("critical")
        await on.until("gone", lambda: on.phase(f"critical-{NODE}"))


async def test_a_resize_in_place(zygote: Zygote, directory: Path) -> None:
    """RES-3: granted where there is room, and once there is."""
    async with world(zygote, directory, cpu="4") as on:
        on.bind("a", "1")
        on.bind("b", "2")
        await on.until("Running", lambda: on.phase("a"))
        await on.until("Running", lambda: on.phase("b"))
        resize(on, "a", "3")
        await on.until("Deferred", lambda: condition(on, "a", "PodResizePending").get("reason"))
        assert allocated(on, "a") == "1"
        await on.until(["a"], lambda: on.events("ResizeDeferred"))

        on.server.store.delete("pods", "default", "b", {})
        await on.until("3", lambda: allocated(on, "a"))
        await on.until({}, lambda: condition(on, "a", "PodResizePending"))
        await on.until(["a"], lambda: on.events("ResizeStarted"))
        assert on.told("start").count(uid(on, "a")) == 1


async def test_admission_is_told_of_the_node_again_after_its_restart(
    zygote: Zygote, directory: Path
) -> None:
    """A pod is never judged without the Node object, however Admission comes and goes."""
    async with world(zygote, directory) as on:
        on.bind("first", "1")
        await on.until("Running", lambda: on.phase("first"))
        on.node.kill(SERVICES)
        await on.node.dead(SERVICES)
        on.bind("big", "15")
        on.node.start(SERVICES)

        await on.until("OutOfcpu", lambda: on.status("big").get("reason"))


def resize(on: World, name: str, cpu: str) -> None:
    pod = on.server.store.get("pods", "default", name)
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    on.server.store.update("pods", "default", name, pod)


def uid(on: World, name: str) -> str:
    return str(on.server.store.get("pods", "default", name)["metadata"]["uid"])


def condition(on: World, name: str, kind: str) -> dict[str, Any]:
    conditions = on.status(name).get("conditions") or ()
    return next((c for c in conditions if c["type"] == kind), {})


def allocated(on: World, name: str) -> str | None:
    statuses = on.status(name).get("containerStatuses") or [{}]
    amount: str | None = statuses[0].get("allocatedResources", {}).get("cpu")
    return amount

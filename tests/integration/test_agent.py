"""The whole way of a pod over sockets: manifest, loop, Admission, providers, processes, status."""

from __future__ import annotations

import asyncio
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.integration.agent_world import AGENT, SERVICES, AgentWorld, Zygote, agent_world

pytestmark = pytest.mark.processes


def exclusive(cpus: int) -> dict[str, Any]:
    amounts = {"cpu": str(cpus), "memory": "1Gi"}
    return {"requests": amounts, "limits": amounts}


async def test_pods_live_and_die_as_their_manifests_say(zygote: Zygote, directory: Path) -> None:
    async with agent_world(zygote, directory) as on:
        on.write(
            on.pod(
                "app",
                on.container("main", resources=exclusive(2)),
                initContainers=[
                    on.container("setup", "true", resources=exclusive(1)),
                    on.container("helper", restartPolicy="Always"),
                ],
            ),
            on.pod("once", on.container("job", "exit 0"), restartPolicy="Never"),
            on.pod("failing", on.container("job", "exit 7"), restartPolicy="Never"),
            on.pod("huge", on.container("c", resources=exclusive(40))),
            on.pod("broken", {**on.container("c"), "command": ["/no/such/command"]}),
            on.pod("asleep", on.container("c", "sleep 1", resources=exclusive(1))),
        )
        (on.manifests / "bad.yaml").write_text("kind: Pod\nmetadata: {name: [}")
        on.start_all()
        await on.until(
            {
                "app": "admitted Running",
                "once": "admitted Succeeded",
                "failing": "admitted Failed",
                "huge": "rejected Failed",
                "broken": "admitted Running",
                "asleep": "admitted Running",
            },
            on.phases,
        )
        await on.until({"app/main", "app/helper"}, lambda: on.processes().keys() - {"asleep/c"})
        await on.until(True, lambda: on.begun()["asleep/c"] >= 2)  # it ended, and came again

        rows = on.rows()
        assert rows["huge"].reason == "TopologyAffinityError"
        assert rows["huge"].status["message"] == (
            "Pod was rejected: Resources cannot be allocated with Topology locality"
        )
        parts = ("app/setup", "app/helper", "app/main")
        await on.until([1, 1, 1], lambda: [on.begun()[part] for part in parts])
        (crashing,) = rows["broken"].status["containerStatuses"]
        assert "No such file or directory" in str(crashing)
        assert rows["app"].status["qosClass"] == "Burstable"
        await on.until(["bad.yaml"], lambda: [Path(p.place).name for p in on.problems()])
        await on.settled({"app", "broken", "asleep"})
        assert await on.faults() == []

        # A manifest is mended, another one goes.
        on.write(on.pod("bad", on.container("c", "exit 0"), restartPolicy="Never"))
        (on.manifests / "bad.yaml").unlink()
        on.remove("app")
        await on.until("admitted Succeeded", lambda: on.phases().get("bad"))
        await on.until(False, lambda: "app" in on.rows())
        await on.until([], on.problems)
        assert not on.processes().keys() & {"app/main", "app/helper"}
        await on.until(False, lambda: any(on.state.joinpath("logs").glob("*_app-*")))
        await on.settled({"broken", "asleep"})


async def test_an_agent_that_stops_leaves_its_containers_alone(
    zygote: Zygote, directory: Path
) -> None:
    async with agent_world(zygote, directory) as on:
        on.write(
            on.pod("a", on.container("c", resources=exclusive(2))),
            on.pod("gone", on.container("c")),
            on.pod("done", on.container("c", "exit 0"), restartPolicy="Never"),
            on.pod("huge", on.container("c", resources=exclusive(40))),
        )
        on.start_all()
        expected = {
            "a": "admitted Running",
            "gone": "admitted Running",
            "done": "admitted Succeeded",
            "huge": "rejected Failed",
        }
        await on.until(expected, on.phases)
        pids = on.processes()
        await on.stop(AGENT)
        assert on.processes() == pids

        on.remove("gone")
        on.write(on.pod("new", on.container("c")))
        on.start(AGENT)
        del expected["gone"]
        await on.until({**expected, "new": "admitted Running"}, on.phases)
        await on.until({"a/c", "new/c"}, lambda: set(on.processes()))

        assert on.processes()["a/c"] == pids["a/c"]
        await on.until({"a/c": 1, "gone/c": 1, "done/c": 1, "new/c": 1}, on.begun)
        assert [e.type for e in on.entries() if e.kind == "decision"].count("rejected") == 1


async def test_an_agent_waits_for_admission_and_rejects_nobody(
    zygote: Zygote, directory: Path
) -> None:
    """DES-3, DES-12: it is down at the start, and goes away later."""
    async with agent_world(zygote, directory, address="127.0.0.1:0") as on:
        on.write(on.pod("a", on.container("c")))
        on.start(AGENT)
        await on.until(True, lambda: "waiting for Admission" in log_of(on))
        assert health_of(on) == "ok"
        assert on.rows() == {}
        on.start(SERVICES)
        await on.until({"a": "admitted Running"}, on.phases)

        on.kill(SERVICES)
        await on.dead(SERVICES)
        on.write(on.pod("b", on.container("c")))
        await asyncio.sleep(0.3)
        assert set(on.rows()) == {"a"}
        on.start(SERVICES)
        await on.until({"a": "admitted Running", "b": "admitted Running"}, on.phases)
        await on.until({"a/c": 1, "b/c": 1}, on.begun)


async def test_what_admission_has_lost_is_asked_about_again(
    zygote: Zygote, directory: Path
) -> None:
    async with agent_world(zygote, directory) as on:
        names = [f"p{number}" for number in range(4)]
        on.write(*(on.pod(name, on.container("c", resources=exclusive(3))) for name in names))
        on.start_all()
        await on.until(dict.fromkeys(names, "admitted Running"), on.phases)
        first = await on.admitted()

        on.kill(SERVICES)
        await on.dead(SERVICES)
        for path in (directory / "state").glob("numalign.db*"):
            path.unlink()
        on.start(SERVICES)
        await on.until(True, lambda: "are asked about again" in log_of(on))
        await on.settled(set(first))

        assert await on.admitted() == first == names
        await on.until({f"{name}/c": 1 for name in names}, on.begun)
        assert await on.faults() == []


async def test_a_pod_that_takes_another_ones_place_waits_for_it(
    zygote: Zygote, directory: Path
) -> None:
    """The kubelet forgets a pod when its manifest goes; here it still holds what it was given."""
    async with agent_world(zygote, directory) as on:
        slow = "trap 'sleep 0.5; exit 0' TERM; while :; do sleep 0.1; done"
        on.write(on.pod("old", on.container("c", slow, resources=exclusive(6))))
        on.write(on.pod("other", on.container("c", resources=exclusive(6))))
        on.start_all()
        await on.until({"old": "admitted Running", "other": "admitted Running"}, on.phases)
        await on.until(True, lambda: on.begun()["old/c"] == 1)
        on.write(on.pod("new", on.container("c", resources=exclusive(5))))
        await on.until("rejected Failed", lambda: on.phases().get("new"))

        on.remove("old", "new")
        on.write(on.pod("next", on.container("c", resources=exclusive(5))))
        await on.until({"next": "admitted Running", "other": "admitted Running"}, on.phases)


def log_of(on: AgentWorld) -> str:
    path = on.directory / "agent.log"
    return path.read_text() if path.exists() else ""


def health_of(on: AgentWorld) -> str:
    """What the agent's page says; its port is in the log."""
    line = next(line for line in log_of(on).splitlines() if "page served" in line)
    port = int(line.split('"port": ')[1].split(",")[0].rstrip("}"))
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=60) as answer:
        return str(answer.read().decode())


async def test_two_agents_do_not_share_a_state_directory(zygote: Zygote, directory: Path) -> None:
    async with agent_world(zygote, directory) as on:
        on.write()
        on.start_all()
        await on.until(True, (on.state / "agent.lock").exists)
        (on.directory / "agent.log").rename(on.directory / "first.log")
        first = on._running.pop(AGENT)
        on.start(AGENT)
        assert await on.dead(AGENT)
        on._running[AGENT] = first

        assert "is held by another process" in log_of(on)

"""A node that shuts down: its agent ends the pods in order, and after the boot they run again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.agent_world import AGENT, NODE, SERVICES, AgentWorld, Zygote, agent_world
from tests.integration.dbus_daemon import Daemon, Manager, logind

pytestmark = pytest.mark.processes

MESSAGE = "Pod was terminated in response to imminent node shutdown."


@asynccontextmanager
async def node(zygote: Zygote, directory: Path) -> AsyncIterator[tuple[AgentWorld, Manager]]:
    """A node whose services and agent both follow one logind."""
    daemon = Daemon(directory)
    daemon.start()
    try:
        shutdown = {"source": "logind", "bus": daemon.address}
        allocatable = {"cpu": "14", "memory": "31Gi", "pods": "10"}
        object_ = {"metadata": {"name": NODE}, "status": {"allocatable": allocatable}}
        (directory / "node.yaml").write_text(yaml.safe_dump(object_))
        services = {"admission": {"shutdown": shutdown, "node": "node.yaml"}}
        async with logind(daemon) as manager, agent_world(zygote, directory, services) as on:
            document: dict[str, Any] = yaml.safe_load(on.config.read_text())
            document["shutdownGracePeriod"] = "50s"
            document["shutdownGracePeriodCriticalPods"] = "20s"
            on.config.write_text(yaml.safe_dump(document))
            yield on, manager
    finally:
        daemon.stop()


async def test_pods_end_in_order_and_run_again_after_the_boot(
    zygote: Zygote, directory: Path
) -> None:
    """SHUT-4."""
    async with node(zygote, directory) as (on, manager):
        ends = directory / "ends"
        script = f"trap 'echo \"$POD\" >> {ends}; exit 0' TERM; while :; do sleep 0.05; done"
        on.write(
            on.pod("system", on.container("c", script), priority=2_000_001_000),
            on.pod("web", on.container("c", script)),
            on.pod("job", on.container("c", "exit 0"), restartPolicy="Never"),
        )
        on.start_all()
        running = {"system": "admitted Running", "web": "admitted Running"}
        await on.until({**running, "job": "admitted Succeeded"}, on.phases)
        await on.until({"system/c": 1, "web/c": 1, "job/c": 1}, lambda: dict(on.begun()))
        await on.until(2, lambda: len(manager.inhibitors))

        manager.PrepareForShutdown(True)
        await on.until(
            {"system": "admitted Failed", "web": "admitted Failed", "job": "admitted Succeeded"},
            on.phases,
        )
        await on.settled(set())
        await on.until([False, False], lambda: [manager.is_held(lock) for lock in (0, 1)])

        ended = [line.partition("-")[0] for line in ends.read_text().split()]
        assert ended == ["web", "system"]
        status = on.rows()["web"].status
        assert (status["reason"], status["message"]) == ("Terminated", MESSAGE)
        (target,) = [c for c in status["conditions"] if c["type"] == "DisruptionTarget"]
        assert (target["reason"], target["message"]) == ("TerminationByKubelet", MESSAGE)

        # What comes while the node shuts down is refused, and judged anew afterwards.
        on.write(on.pod("late", on.container("c")))
        await on.until("rejected Failed", lambda: on.phases().get("late"))
        assert on.rows()["late"].reason == "NodeShutdown"

        await on.stop(AGENT)
        await on.stop(SERVICES)
        manager.preparing = False
        on.start_all()
        await on.until(
            {**running, "late": "admitted Running", "job": "admitted Succeeded"}, on.phases
        )
        assert await on.faults() == []

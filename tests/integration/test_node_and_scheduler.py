"""The services and `numalign-agent node` as processes, an API server, and a scheduler.

A ReplicaSet makes a new pod whenever one has failed, so a node that must refuse its pods gets them
again and again, unless the scheduler knows better.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.fake_api.server import CUSTOM, FakeApiServer, fake_api_server
from tests.integration.fake_api.store import Problem
from tests.integration.served_node import ServedNode, document
from tests.integration.topology_match import attributes_of, fits, is_in_step

from numalign.kube.pod_json import pod_from_json
from numalign.v1 import types_pb2 as pb

pytestmark = pytest.mark.processes

NAME = "node-1"
TAINT = {"key": "numalign.io/not-ready", "effect": "NoSchedule"}
OTHER = {"key": "example.com/maintenance", "effect": "NoSchedule"}
PROGRAM = Path(sys.executable).parent / "numalign-agent"
SERVICES = ("admission", "topology", "cpu", "memory", "device")
SECONDS = 90.0


def cpus_only(*nodes: range) -> dict[str, Any]:
    """A machine of NUMA nodes with these CPUs."""
    return {
        "numa_nodes": [
            {
                "id": node,
                "memory_bytes": 16 << 30,
                "distances": [10 if node == other else 20 for other in range(len(nodes))],
                "cores": [{"id": c, "socket_id": node, "threads": [c]} for c in cpus],
            }
            for node, cpus in enumerate(nodes)
        ]
    }


def replica(name: str, cpus: int) -> dict[str, Any]:
    amounts = {"cpu": str(cpus), "memory": "1Gi"}
    resources = {"requests": amounts, "limits": amounts}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"containers": [{"name": "c", "resources": resources}]},
    }


class World:
    """One node of a cluster."""

    def __init__(self, directory: Path, server: FakeApiServer, agent: dict[str, Any]) -> None:
        self.server = server
        section = {"machine": cpus_only(range(15), range(15, 29)), "devices": []}
        self.services = ServedNode(directory, section)
        self.log = directory / "node.log"
        self._config = directory / "config.yaml"
        self._agent: subprocess.Popen[bytes] | None = None
        whole = document(directory, section) | {
            "topologyManagerPolicy": "single-numa-node",
            "memoryManagerPolicy": "None",
            "reservedMemory": [],
            "reservedSystemCPUs": "0",
        }
        whole["numalign"]["agent"] = {
            "nodeName": NAME,
            "api": {"kubeconfig": "kubeconfig"},
            "node": {"address": "127.0.0.1:0", "checkInterval": "100ms", **agent},
        }
        self._config.write_text(yaml.safe_dump(whole))
        server.kubeconfig(directory / "kubeconfig")

    def start_agent(self, *arguments: str) -> None:
        """Run `numalign-agent node`."""
        with self.log.open("ab") as log:
            self._agent = subprocess.Popen(
                [PROGRAM, "node", "--config", self._config, *arguments],
                stdout=log,
                stderr=log,
                env={**os.environ, "HOME": "/nonexistent"},
            )

    async def stop_agent(self) -> None:
        """End it; it has to end well."""
        assert self._agent is not None
        self._agent.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(self._agent.wait, 60)
        self._agent = None
        assert code == 0, self.log.read_text()

    async def close(self) -> None:
        """End everything."""
        if self._agent is not None:
            await self.stop_agent()
        self.services.stop()

    def join(self, *taints: dict[str, str]) -> None:
        """The Node registers."""
        node = {"metadata": {"name": NAME}, "spec": {"taints": list(taints)}}
        self.server.store.create("nodes", "", node)

    def taints(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = self.server.store.get("nodes", "", NAME)["spec"]["taints"]
        return found

    def topology(self) -> dict[str, Any]:
        """The node's NodeResourceTopology; empty where there is none."""
        try:
            return self.server.store.get(CUSTOM, "", NAME)
        except Problem:
            return {}

    async def admit(self, pod: dict[str, Any]) -> int:
        """What becomes of a pod that is bound to the node."""
        answer = await asyncio.to_thread(self.services.admit, pod_from_json(pod))
        return answer.verdict

    async def release(self, pod: dict[str, Any]) -> None:
        await asyncio.to_thread(self.services.release, pod["metadata"]["uid"])

    def said(self, text: str) -> bool:
        """Whether the agent's log has this."""
        return text in self.log.read_text()

    async def page(self, path: str) -> tuple[int, str]:
        """What the agent's page answers."""
        lines = [yaml.safe_load(line) for line in self.log.read_text().splitlines()]
        (port,) = (line["port"] for line in lines if line["event"] == "metrics served")

        def get() -> tuple[int, str]:
            connection = HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", path)
            response = connection.getresponse()
            answer = response.status, response.read().decode()
            connection.close()
            return answer

        return await asyncio.to_thread(get)

    async def until(self, fits: Callable[[], bool], what: str) -> None:
        """Wait until something is so."""
        try:
            async with asyncio.timeout(SECONDS):
                while not fits():  # noqa: ASYNC110 - what is waited for is in other processes
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"{what}: {self.topology()} {self.log.read_text()}") from None


@asynccontextmanager
async def world(directory: Path, **agent: Any) -> AsyncIterator[World]:
    async with fake_api_server() as server:
        server.has_custom = True
        made = World(directory, server, agent)
        try:
            yield made
        finally:
            await made.close()


async def test_the_taint_goes_when_the_last_service_is_ready(directory: Path) -> None:
    async with world(directory, taint={"restoreAfter": "300ms"}) as on:
        on.join(OTHER, TAINT)
        await asyncio.to_thread(on.services.start, *SERVICES[1:])
        on.start_agent()
        await on.until(lambda: on.log.exists() and on.said("nobody answers at"), "it is said")
        waits = on.taints()
        status, said = await on.page("/readyz")
        await asyncio.to_thread(on.services.start, "admission")
        await on.until(lambda: on.taints() == [OTHER], "the taint is gone")
        await on.until(lambda: on.said("all is ready"), "it is said")
        async with asyncio.timeout(SECONDS):
            while await on.page("/readyz") != (200, "ok"):  # noqa: ASYNC110 - asked over HTTP
                await asyncio.sleep(0.1)
        await asyncio.to_thread(on.services.stop, "cpu")
        await on.until(lambda: on.taints() == [OTHER, TAINT], "the taint is back")
        await asyncio.to_thread(on.services.start, "cpu")
        await on.until(lambda: on.taints() == [OTHER], "the taint is gone again")
        _, metrics = await on.page("/metrics")

    assert waits == [OTHER, TAINT]
    assert status == 500
    assert f"[-]services failed: admission: nobody answers at {directory}/run" in said
    # A busy machine may be taken for one that is not ready once more.
    changes = dict(re.findall(r'taint_changes_total{change="(\w+)"} (\d+)', metrics))
    assert int(changes["removed"]) > int(changes["restored"]) >= 1
    assert not [r for r in on.server.requests if not r.endswith(f"/nodes/{NAME}")]


async def test_a_replica_set_does_not_run_away(directory: Path) -> None:
    async with world(directory) as on:
        on.join(TAINT)
        await asyncio.to_thread(on.services.start, "all")
        on.start_agent("--export-topology")
        await on.until(lambda: on.taints() == [], "the taint is gone")
        await on.until(lambda: bool(on.topology()), "the topology is there")
        running = [replica("a", 8), replica("b", 8)]
        for pod in running:
            assert fits(on.topology(), pod)
            assert await on.admit(pod) == pb.VERDICT_ADMITTED
        await on.until(lambda: is_in_step(on.topology(), running), "it is of these pods")
        wanted = replica("c", 8)

        # 12 CPUs are left, but no NUMA node has 8 of them.
        blindly = [await on.admit(replica(f"c-{number}", 8)) for number in range(5)]
        bound = [number for number in range(5) if fits(on.topology(), wanted)]

        assert blindly == [pb.VERDICT_REJECTED] * 5
        assert bound == []
        assert fits(on.topology(), replica("d", 6))
        available = [zone["resources"][0]["available"] for zone in on.topology()["zones"]]
        assert available == ["6", "6"]

        await on.release(running.pop(0))
        await on.until(lambda: is_in_step(on.topology(), running), "it is of the pod that is left")
        assert fits(on.topology(), wanted)
        assert await on.admit(wanted) == pb.VERDICT_ADMITTED
        await on.until(lambda: not fits(on.topology(), replica("e", 8)), "there is no room again")

    found = on.topology()
    assert attributes_of(found)["topologyManagerPolicy"] == "single-numa-node"
    assert attributes_of(found)["topologyManagerScope"] == "container"
    assert found["topologyPolicies"] == ["SingleNUMANodeContainerLevel"]
    assert [zone["costs"][1]["value"] for zone in found["zones"]] == [20, 10]
    assert found["metadata"]["ownerReferences"][0]["name"] == NAME


async def test_what_stands_in_the_way_is_named_and_waited_for(directory: Path) -> None:
    async with world(directory, topology={"deleteAtEnd": True, "heartbeat": "200ms"}) as on:
        on.server.has_custom = False
        on.server.faults.forbidden.add("PATCH nodes")
        await asyncio.to_thread(on.services.start, "all")
        on.start_agent()
        await on.until(lambda: on.log.exists() and on.said("there is no Node node-1"), "no node")
        on.join(TAINT)
        await on.until(lambda: on.said("needs the rights get and patch on nodes"), "no right")
        await on.until(lambda: on.said("deploy/crds/noderesourcetopologies.yaml"), "no such kind")
        _, said = await on.page("/readyz")
        on.server.faults.forbidden.clear()
        on.server.has_custom = True
        await on.until(lambda: on.taints() == [] and bool(on.topology()), "all is well")
        await on.server.stop()
        await on.until(lambda: on.said("Cannot connect to host"), "the server is away")
        await on.server.start()
        wrong = {**on.topology(), "zones": []}
        on.server.store.update(CUSTOM, "", NAME, wrong)
        await on.until(lambda: len(on.topology()["zones"]) == 2, "it is repaired")
        await on.stop_agent()

        assert on.topology() == {}
    assert "[-]taint failed: 403 Forbidden" in said
    assert "[-]topology failed: this cluster has no NodeResourceTopology" in said


async def test_the_topology_follows_another_policy(directory: Path) -> None:
    async with world(directory, topology={"heartbeat": "200ms"}) as on:
        on.join()
        await asyncio.to_thread(on.services.start, "all")
        on.start_agent()
        await on.until(lambda: bool(on.topology()), "the topology is there")
        config = on.services.directory / "config.yaml"
        config.write_text(config.read_text().replace("single-numa-node", "restricted"))
        on.services.reload("all")
        await on.until(
            lambda: on.topology()["topologyPolicies"] == ["RestrictedContainerLevel"],
            "the policy is another one",
        )

        assert attributes_of(on.topology())["topologyManagerPolicy"] == "restricted"


def test_without_an_api_server_there_is_nobody_to_tell(tmp_path: Path) -> None:
    given = {name: value for name, value in os.environ.items() if name != "NUMALIGN_CONFIG"}
    done = subprocess.run(
        [PROGRAM, "node"],
        env={**given, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1, done.stderr
    assert "numalign.agent.api: must be given" in done.stderr

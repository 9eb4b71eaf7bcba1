"""Real containers in the virtual machine: containerd, runc, the services and the plugin.

Runs as a program, as the machine's only job. Everything is slow here, so that nobody's patience
is tested, only where containers end up.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e import containerd, cri
from tests.e2e.node import Node, RunningPod
from tests.integration.fake_api.server import fake_api_server

from numalign.model.cpu_set import CpuSet

_SECONDS = 300.0


class SlowNode(Node):
    """A node on which everything takes its time."""

    async def until(self, is_so: Callable[[], bool], what: str, _: float = 0.0) -> None:
        await super().until(is_so, what, _SECONDS)


async def main() -> None:
    containerd._START_SECONDS = _SECONDS
    cri.SECONDS = _SECONDS
    directory = Path(tempfile.mkdtemp(prefix="n", dir="/run"))
    async with fake_api_server() as api:
        api.kubeconfig(directory / "kubeconfig")
        node = SlowNode(directory, api)
        try:
            report: dict[str, Any] = await _placed(node)
        except Exception as error:
            report = {"failed": f"{type(error).__name__}: {error}", "told": node.told()}
        os.write(3, json.dumps(report).encode() + b"\n")
        # The machine is turned off next: nothing has to be tidied.
        os._exit(0)


async def _placed(node: SlowNode) -> dict[str, Any]:
    await node.containerd.start(patience="60s")
    await node.containerd.import_images()
    node.configure()
    await node.start_services()
    await node.start_plugin()
    seen: dict[str, Any] = {}
    for name, cpu in (("shared", 0), ("first", 3), ("second", 3)):
        pod = await node.run_pod(name, cpu=cpu)
        await node.run_container(pod, cpu=cpu)
    held = await node.admitted()
    for pod in node.pods:
        granted = held[pod.uid].get("app", "")
        await node.until(lambda: not granted or _of(node, pod)[0] == granted, pod.name)  # noqa: B023
        seen[pod.name] = {"granted": granted, "allowed": _of(node, pod)}
    await node.until(lambda: _of(node, node.pod("shared"))[0] == _rest(seen), "shared CPUs")
    seen["shared"]["allowed"] = _of(node, node.pod("shared"))
    return seen


def _rest(seen: dict[str, Any]) -> str:
    """The CPUs that nobody has of his own."""
    taken = 0
    for pod in seen.values():
        taken |= CpuSet.parse(pod["granted"]).bits
    return str(CpuSet(((1 << 16) - 1) & ~taken))


def _of(node: Node, pod: RunningPod) -> list[str]:
    """The CPUs and NUMA nodes that a container's first process may use, as the kernel says."""
    (container,) = pod.containers.values()
    processes = node.cpuset_of(pod, container).with_name("cgroup.procs").read_text().split()
    lines = Path(f"/proc/{processes[0]}/status").read_text().splitlines()
    wanted = ("Cpus_allowed_list:", "Mems_allowed_list:")
    return [line.split()[1] for line in lines if line.startswith(wanted)]


if __name__ == "__main__":
    asyncio.run(main())

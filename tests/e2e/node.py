"""A node as the tests need it: a container runtime, the services, the plugin, an API server.

All but the API server are real processes. The test is the kubelet: it starts pods over CRI.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import yaml
from tests.e2e.containerd import BUSYBOX, USUAL_SUITE, Containerd
from tests.e2e.cri import OF_CONTAINER, OF_NODE, cri
from tests.integration.fake_api.server import FakeApiServer

from numalign_client import AsyncAdmissionClient

PROGRAMS = Path(sys.executable).parent
SHARED_FIRST = str(min(os.sched_getaffinity(0)))
"""The CPU that is reserved, and so always among the shared ones."""

LONG = 60.0
"""Seconds that nothing takes on a machine that works: not what is measured."""

CONNECTED = "connected to the runtime"
"""What the plugin says when it is."""

NAMESPACES = {"network": OF_NODE, "pid": OF_CONTAINER}

_MIB = 1 << 20
_PERIOD = 100_000


@dataclass(slots=True)
class Process:
    """A program that runs until it is ended; what it says goes to a file."""

    name: str
    command: tuple[str, ...]
    log: Path
    process: asyncio.subprocess.Process | None = None
    heard: int = 0

    async def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *self.command, stdout=log, stderr=log, start_new_session=True
            )

    def send(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    async def stop(self, number: int = signal.SIGTERM) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number)
            async with asyncio.timeout(20):
                await self.process.wait()

    def runs(self) -> bool:
        return self.process is not None and self.process.returncode is None

    def has_failed(self) -> bool:
        return self.process is not None and (self.process.returncode or 0) > 0

    def said(self) -> str:
        """What it has said since the test began, or since it was started in it."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return text[self.heard :]

    def forget_said(self) -> None:
        self.heard += len(self.said())


@dataclass(slots=True)
class RunningPod:
    """A pod whose sandbox runs."""

    name: str
    uid: str
    sandbox: str
    config: Any
    containers: dict[str, str] = field(default_factory=dict)


class Node:
    """Everything on one node, below one directory."""

    def __init__(self, directory: Path, api: FakeApiServer, suite: str = USUAL_SUITE) -> None:
        self.directory = directory
        self.api = api
        self.containerd = Containerd(directory, suite)
        self.socket = directory / "run" / "admission.sock"
        self.config = directory / "numalign.yaml"
        self.services = Process(
            "services",
            (str(PROGRAMS / "numalign"), "serve", "all", "--config", str(self.config)),
            directory / "services.log",
        )
        self.plugin = Process(
            "plugin",
            (str(PROGRAMS / "numalign-agent"), "nri", "--config", str(self.config)),
            directory / "plugin.log",
        )
        self.pods: list[RunningPod] = []

    def configure(self, services: Mapping[str, Any] | None = None, **nri: Any) -> None:
        """Write the configuration: one CPU is reserved, the others may be exclusive.

        `services` is added to what the services are told, `nri` to what the plugin is.
        """
        section = {
            "socket": str(self.containerd.nri_socket),
            "checkInterval": "1s",
            "releaseAfter": "1s",
            "requestTimeout": "20s",
            **nri,
        }
        document = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "topologyManagerPolicy": "single-numa-node",
            "cpuManagerPolicy": "static",
            "reservedSystemCPUs": SHARED_FIRST,
            "memoryManagerPolicy": "Static",
            "evictionHard": {"memory.available": "100Mi"},
            "reservedMemory": [{"numaNode": 0, "limits": {"memory": "100Mi"}}],
            "numalign": {
                "runtimeDirectory": str(self.socket.parent),
                "stateDirectory": str(self.directory / "state-numalign"),
                "log": {"level": "debug"},
                "agent": {
                    "nodeName": "node",
                    "api": {"kubeconfig": str(self.directory / "kubeconfig")},
                    "nri": {"address": "127.0.0.1:0", **section},
                },
                **(services or {}),
            },
        }
        self.config.write_text(yaml.safe_dump(document), encoding="utf-8")

    async def start_services(self) -> None:
        self.services.forget_said()
        await self.services.start()
        await self.until(lambda: str(self.socket) in self.services.said(), "the services serve")

    async def start_plugin(self) -> None:
        self.plugin.forget_said()
        await self.plugin.start()
        await self.until(lambda: CONNECTED in self.plugin.said(), "the plugin is connected")
        self.plugin.forget_said()

    async def start_plugin_without_services(self) -> None:
        """Start it where nobody answers: it waits for Admission, and says so."""
        await self.plugin.start()
        await asyncio.sleep(0.5)
        assert self.plugin.process is not None
        assert self.plugin.process.returncode is None, self.plugin.said()

    async def ready(self) -> tuple[int, str]:
        """What the plugin's readiness probe would be answered."""
        ports = re.findall(r'"port": ?(\d+)', self.plugin.log.read_text(errors="replace"))

        def ask() -> tuple[int, str]:
            connection = HTTPConnection("127.0.0.1", int(ports[-1]), timeout=LONG)
            connection.request("GET", "/readyz")
            response = connection.getresponse()
            answer = response.status, response.read().decode()
            connection.close()
            return answer

        return await asyncio.to_thread(ask)

    def cpuset_of(self, pod: RunningPod, container: str) -> Path:
        """The file that says which CPUs a container may use."""
        below = f"{pod.config.linux.cgroup_parent.strip('/')}/{container}/cpuset.cpus"
        return next(
            path
            for root in (Path("/sys/fs/cgroup/cpuset"), Path("/sys/fs/cgroup"))
            if (path := root / below).exists()
        )

    async def until(self, is_so: Callable[[], bool], what: str, seconds: float = LONG) -> None:
        """Wait until something is so."""
        try:
            async with asyncio.timeout(seconds):
                while not is_so():
                    for program in (self.services, self.plugin):
                        assert not program.has_failed(), f"{program.name} ended\n{self.told()}"
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"not within {seconds} s: {what}\n{self.told()}") from None

    async def run_pod(
        self,
        name: str,
        *,
        cpu: int = 0,
        memory: int = 16,
        known: bool = True,
        uid: str = "",
        annotations: Mapping[str, str] | None = None,
        devices: Mapping[str, str] | None = None,
    ) -> RunningPod:
        """Run a pod's sandbox. Of `cpu` CPUs it is Guaranteed, of 0 it asks for nothing."""
        if known:
            found = pod_object(name, cpu, memory, devices or {})
            pod = self.api.store.create("pods", "default", found)
            uid = pod["metadata"]["uid"]
        return await self.run_sandbox(name, uid or f"uid-{name}", cpu, annotations)

    async def run_sandbox(
        self,
        name: str,
        uid: str,
        cpu: int,
        annotations: Mapping[str, str] | None = None,
        attempt: int = 0,
    ) -> RunningPod:
        quality = "" if cpu else "burstable/"
        config = cri.PodSandboxConfig(
            metadata={"name": name, "uid": uid, "namespace": "default", "attempt": attempt},
            log_directory=str(self.directory / "logs"),
            labels={"io.kubernetes.pod.uid": uid},
            annotations={"kubernetes.io/config.source": "api", **(annotations or {})},
            linux={
                "cgroup_parent": f"{self.containerd.cgroup}/kubepods/{quality}pod{uid}",
                "security_context": {"namespace_options": NAMESPACES},
            },
        )
        sandbox = await self.containerd.cri.run_sandbox(config)
        pod = RunningPod(name, uid, sandbox, config)
        self.pods.append(pod)
        return pod

    async def run_container(
        self, pod: RunningPod, *, cpu: int = 0, memory: int = 16, cpus: str = "", name: str = "app"
    ) -> str:
        """Create and start a container of a pod; its id. `cpus` is what CRI asks for."""
        resources = {"cpu_shares": 1024 * cpu or 2, "cpuset_cpus": cpus}
        if cpu:
            resources |= {
                "cpu_quota": cpu * _PERIOD,
                "cpu_period": _PERIOD,
                "memory_limit_in_bytes": memory * _MIB,
            }
        config = cri.ContainerConfig(
            metadata={"name": name},
            image={"image": BUSYBOX},
            log_path=f"{pod.uid}-{name}.log",
            linux={
                "resources": resources,
                "security_context": {"namespace_options": NAMESPACES},
            },
        )
        container = await self.containerd.cri.create(pod.sandbox, config, pod.config)
        await self.containerd.cri.start(container)
        pod.containers[name] = container
        return container

    async def run_whole_pod(self, name: str, *, cpu: int = 0, **options: Any) -> str:
        """A pod with one container; the container's id."""
        pod = await self.run_pod(name, cpu=cpu, **options)
        return await self.run_container(pod, cpu=cpu)

    async def end_pod(self, pod: RunningPod) -> None:
        """Stop and remove a pod, as a kubelet does with a pod that was deleted."""
        await self.containerd.cri.stop_sandbox(pod.sandbox)
        await self.containerd.cri.remove_sandbox(pod.sandbox)
        self.pods.remove(pod)
        self.api.store.objects.get("pods", {}).pop(("default", pod.name), None)

    def pod(self, name: str) -> RunningPod:
        return next(pod for pod in self.pods if pod.name == name)

    async def cpus(self, container: str) -> str:
        """The CPUs that a container's first process may run on, as its kernel says."""
        text = await self.containerd.cri.run_inside(
            container, "grep", "Cpus_allowed_list", "/proc/1/status"
        )
        return text.split()[1]

    async def until_on(self, container: str, cpus: str, seconds: float = LONG) -> None:
        """Wait until a container runs on these CPUs."""
        found = ""
        try:
            async with asyncio.timeout(seconds):
                while (found := await self.cpus(container)) != cpus:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"on CPUs {found}, not on {cpus}\n{self.told()}") from None

    def device_plugin(self, sockets: Path, devices: Path) -> Process:
        """The sample device plugin, whose devices are files."""
        options = ("--sockets", str(sockets), "--devices", str(devices))
        command = (sys.executable, "-m", "examples.device_plugin", *options)
        return Process("device plugin", command, self.directory / "device-plugin.log")

    async def until_offered(self, resource: str) -> str:
        """Wait until the node has a device of a resource; its name."""
        async with AsyncAdmissionClient(self.socket) as client, asyncio.timeout(LONG):
            async for resources in client.watch_node_resources():
                if resource in str(resources):
                    return resource
        raise AssertionError(f"no {resource}\n{self.told()}")

    async def until_admitted(self, uids: set[str]) -> None:
        """Wait until these are the pods that Admission has."""
        held: set[str] = set()
        try:
            async with asyncio.timeout(LONG):
                while (held := set(await self.admitted())) != uids:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"admitted are {held}, not {uids}\n{self.told()}") from None

    async def admitted(self) -> dict[str, dict[str, str]]:
        """What Admission has: by pod uid, the CPUs of each container."""
        async with AsyncAdmissionClient(self.socket) as client:
            answer = await client.list_admissions(timeout=10)
        return {
            record.pod_uid: {a.container: a.cpus for a in record.allocations}
            for record in answer.admissions
        }

    def begin(self) -> None:
        """What was said before does not count."""
        for program in (self.services, self.plugin):
            program.forget_said()

    def serves(self) -> bool:
        """Whether services and plugin run."""
        return self.services.runs() and self.plugin.runs()

    async def tidy(self) -> None:
        """End every pod, and see that nothing is held for any."""
        if self.services.runs():
            self.services.send(signal.SIGCONT)
        await self.containerd.remove_pods()
        self.pods.clear()
        self.api.store.objects.clear()
        if self.serves():
            await self.until_admitted(set())

    async def stop_programs(self) -> None:
        """End the plugin and the services, and everything that they knew."""
        await self.containerd.remove_pods()
        await self.plugin.stop(signal.SIGKILL)
        await self.services.stop(signal.SIGKILL)
        for path in (self.directory / "state-numalign", self.socket.parent):
            await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)

    def told(self) -> str:
        """What everybody said, for a failure."""
        return "\n".join(
            f"--- {name}\n{text[-6000:]}"
            for name, text in (
                ("services", self.services.said()),
                ("plugin", self.plugin.said()),
                ("containerd", self.containerd.log()),
            )
        )


def pod_object(name: str, cpu: int, memory: int, devices: Mapping[str, str]) -> dict[str, Any]:
    """A pod as an API server has it, with one container."""
    amounts = {**({"cpu": str(cpu), "memory": f"{memory}Mi"} if cpu else {}), **devices}
    resources = {"requests": amounts, "limits": amounts} if amounts else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeName": "node",
            "containers": [{"name": "app", "image": BUSYBOX, "resources": resources}],
        },
        "status": {"phase": "Pending"},
    }

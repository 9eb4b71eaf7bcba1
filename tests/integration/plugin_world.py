"""Nodes with real device plugin processes: the sample plugin, the services, short paths."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from grpc import StatusCode, aio

from numalign.config.loader import load_settings
from numalign.config.settings import Service, Settings
from numalign.kube.core.v1.core_pb2 import Pod
from numalign.kube.pod_json import pod_from_json
from numalign.process.node import Node
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import types_pb2 as pb

GPU = "example.com/gpu"
NIC = "example.com/nic"
PATIENCE = 60.0
ROOT = Path(__file__).parents[2]


@dataclass
class Place:
    """A short directory for one test: sockets, devices, configuration, state."""

    root: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def plugins(self) -> Path:
        return self.root / "dp"

    @property
    def watched(self) -> Path:
        return self.root / "pr"

    def devices(self, resource: str = GPU) -> Path:
        path = self.root / resource.rpartition("/")[2]
        path.mkdir(exist_ok=True)
        return path

    def device(
        self, name: str, numa: int | str | None = None, health: str = "", resource: str = GPU
    ) -> None:
        """Make or change the file of a device, in one piece."""
        lines = [] if numa is None else [f"numa_nodes: {numa}"]
        lines += [f"health: {health}"] if health else []
        path = self.devices(resource)
        (path / f".{name}").write_text("\n".join(lines), encoding="utf-8")
        (path / f".{name}").rename(path / name)

    def config(
        self, *, compatibility: str = "safe", provider_timeout: str = "30s", **plugins: object
    ) -> Path:
        """Write a configuration of two NUMA nodes with four CPUs each."""
        machine = {
            "numa_nodes": [
                {
                    "id": node,
                    "memory_bytes": 16 << 30,
                    "distances": [10, 20] if node == 0 else [20, 10],
                    "cores": [
                        {"id": core, "socket_id": node, "threads": [node * 4 + core]}
                        for core in range(4)
                    ],
                }
                for node in range(2)
            ]
        }
        document = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "topologyManagerPolicy": "single-numa-node",
            "cpuManagerPolicy": "static",
            "reservedSystemCPUs": "0",
            "numalign": {
                "compatibility": compatibility,
                "providerTimeout": provider_timeout,
                "machine": machine,
                "stateDirectory": str(self.root / "state"),
                "runtimeDirectory": str(self.root / "run"),
                "nodeAllocatableReservation": {},
                "devicePlugins": {
                    "mode": "host",
                    "directory": str(self.plugins),
                    "pluginsRegistry": str(self.watched),
                    **plugins,
                },
            },
        }
        path = self.root / "config.yaml"
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        return path

    def settings(self, **changes: Any) -> Settings:
        return load_settings(self.config(**changes), os.environ, False)

    def plugin(
        self, *options: str, resource: str = GPU, watched: bool = False
    ) -> subprocess.Popen[bytes]:
        """Start the sample plugin."""
        name = resource.rpartition("/")[2]
        return self.start(
            "-m",
            "examples.device_plugin",
            *("--resource", resource),
            *("--devices", str(self.devices(resource))),
            *("--sockets", str(self.watched if watched else self.plugins)),
            *("--name", f"{name}.sock"),
            *("--interval", "0.05"),
            *("--journal", str(self.root / "journal")),
            *(("--watched",) if watched else ()),
            *options,
        )

    def service(self, service: Service | None) -> subprocess.Popen[bytes]:
        """Start one service, or (None) all in one process, from the configuration."""
        named = "None" if service is None else f"Service.{service.name}"
        code = (
            "import sys; from pathlib import Path; from numalign.config.settings import Service;"
            "from numalign.process.serve import serve;"
            f"sys.exit(serve({named}, Path({str(self.root / 'config.yaml')!r})))"
        )
        return self.start("-c", code)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        log = (self.root / "log").open("ab")
        process = subprocess.Popen(
            [sys.executable, *arguments], stdout=log, stderr=log, cwd=ROOT / "clients"
        )
        log.close()
        self.processes.append(process)
        return process

    def journal(self, call: str = "Allocate") -> list[list[str]]:
        """The ids of every call of this kind that some plugin has answered."""
        path = self.root / "journal"
        if not path.exists():
            return []
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [line["ids"] for line in lines if line["call"] == call]

    def log(self) -> str:
        return (self.root / "log").read_text(encoding="utf-8", errors="replace")


@contextmanager
def place() -> Iterator[Place]:
    """A directory whose processes are ended and whose files are removed."""
    made = Place(Path(tempfile.mkdtemp(prefix="na-")))
    for directory in (made.plugins, made.watched):
        directory.mkdir()
    try:
        yield made
    finally:
        for process in made.processes:
            end(process, signal.SIGKILL)
        shutil.rmtree(made.root)


def end(process: subprocess.Popen[bytes], number: int = signal.SIGTERM) -> None:
    """End a process and wait for it."""
    if process.poll() is None:
        process.send_signal(number)
    process.wait(timeout=PATIENCE)


def pod(uid: str, *containers: dict[str, int], init: Sequence[dict[str, int]] = ()) -> Pod:
    """A pod whose containers ask for devices by short name: `{"gpu": 2}`, and for CPUs."""

    def listed(kind: str, asked: Sequence[dict[str, int]]) -> list[dict[str, object]]:
        made: list[dict[str, object]] = []
        for number, wants in enumerate(asked):
            amounts = {"cpu": "100m", "memory": "64Mi"} | {
                name if name == "cpu" else f"example.com/{name}": str(count)
                for name, count in wants.items()
            }
            resources = {"limits": amounts, "requests": amounts}
            made.append({"name": f"{kind}{number}", "resources": resources})
        return made

    return pod_from_json(
        {
            "metadata": {"name": uid, "namespace": "default", "uid": uid},
            "spec": {"containers": listed("c", containers), "initContainers": listed("i", init)},
        }
    )


def devices_of(response: ad.AdmitResponse, resource: str = GPU) -> list[str]:
    """Ids of one resource that the pod holds, in order of container."""
    return [
        id_
        for allocation in response.allocations
        for devices in allocation.devices
        if devices.resource == resource
        for id_ in devices.ids
    ]


async def until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait until `condition` holds."""
    begun = time.monotonic()
    while not await condition():
        assert time.monotonic() - begun < PATIENCE, f"not in time: {what}"
        await asyncio.sleep(0.05)


@dataclass
class Agent:
    """What a node agent does, over the Admission service."""

    stub: ad_grpc.AdmissionAsyncStub

    async def admit(self, asked: Pod, **fields: Any) -> ad.AdmitResponse:
        return await self.stub.Admit(
            ad.AdmitRequest(pod=asked, explain=pb.EXPLAIN_LEVEL_FULL, **fields), timeout=60
        )

    async def release(self, uid: str) -> None:
        with suppress_not_found():
            await self.stub.Release(ad.ReleaseRequest(pod_uid=uid), timeout=60)

    async def can_have(self, *containers: dict[str, int]) -> bool:
        """Whether a pod like this would be admitted with all its devices; keeps nothing."""
        response = await self.admit(pod("probe", *containers), dry_run=True)
        wanted = sum(count for wants in containers for n, count in wants.items() if n != "cpu")
        given = sum(len(d.ids) for a in response.allocations for d in a.devices)
        return response.verdict == pb.VERDICT_ADMITTED and given == wanted

    async def prepared(self, uid: str, container: str) -> ad.PrepareContainerResponse:
        return await self.stub.PrepareContainer(
            ad.PrepareContainerRequest(pod_uid=uid, container_name=container), timeout=60
        )


@asynccontextmanager
async def running(world: Place, **changes: object) -> AsyncIterator[Agent]:
    """A node in this process, and an agent of it."""
    node = await Node.open(world.settings(**changes))
    try:
        await node.serving()
        yield Agent(ad_grpc.AdmissionStub(node.channel(Service.ADMISSION)))
    finally:
        await node.close()


@contextmanager
def suppress_not_found() -> Iterator[None]:
    try:
        yield
    except aio.AioRpcError as error:
        if error.code() is not StatusCode.NOT_FOUND:
            raise


def remove(path: Path) -> None:
    with suppress(FileNotFoundError):
        path.unlink()

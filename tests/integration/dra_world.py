"""Nodes with real DRA driver processes: the sample driver, the services, claims in files."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from grpc import aio
from tests.integration.node_document import document
from tests.integration.plugin_world import end, until

from numalign.config.loader import load_settings
from numalign.config.settings import Service, Settings
from numalign.kube.core.v1.core_pb2 import Pod
from numalign.kube.pod_json import pod_from_json
from numalign.kube.podresources.v1 import api_pb2 as prv1
from numalign.kube.podresources.v1 import api_pb2_grpc as prv1_grpc
from numalign.process.node import Node
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import claims_pb2 as cl
from numalign.v1 import dynamic_resources_pb2 as dr
from numalign.v1 import dynamic_resources_pb2_grpc as dr_grpc
from numalign.v1 import types_pb2 as pb

DRIVER = "cards.example.com"
ROOT = Path(__file__).parents[2]
NAMESPACE = "shop"


def claim(name: str, uid: str, *pods: str, devices: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """A claim that is allocated devices by driver and reserved for pods, as the API shows it."""
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": uid},
        "status": {
            "allocation": {
                "devices": {
                    "results": [
                        {"request": f"r{i}", "driver": driver, "pool": "files", "device": device}
                        for driver, names in devices.items()
                        for i, device in enumerate(names)
                    ]
                }
            },
            "reservedFor": [{"resource": "pods", "name": pod, "uid": pod} for pod in pods],
        },
    }


def fetched(document: dict[str, Any]) -> cl.FetchedClaim:
    """The same, as an agent sends it."""
    metadata, status = document["metadata"], document["status"]
    return cl.FetchedClaim(
        name=metadata["name"],
        claim=cl.ResourceClaim(
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            reserved_for=[
                cl.ClaimConsumer(resource=each["resource"], name=each["name"], uid=each["uid"])
                for each in status["reservedFor"]
            ],
            allocation=cl.ClaimResult(
                devices=[
                    cl.AllocatedDevice(
                        request=result["request"],
                        driver=result["driver"],
                        pool=result["pool"],
                        device=result["device"],
                    )
                    for result in status["allocation"]["devices"]["results"]
                ]
            ),
        ),
    )


def claiming_pod(uid: str, *claims: str, requests: dict[str, str] | None = None) -> Pod:
    """A pod of one container that refers to these claims, or to requests of them."""
    amounts = {"cpu": "100m", "memory": "1Mi"}
    wanted = requests or {}
    references = [
        {"name": f"k{i}", "request": wanted.get(name, "")} for i, name in enumerate(claims)
    ]
    return pod_from_json(
        {
            "metadata": {"name": uid, "namespace": NAMESPACE, "uid": uid},
            "spec": {
                "resourceClaims": [
                    {"name": f"k{i}", "resourceClaimName": name} for i, name in enumerate(claims)
                ],
                "containers": [
                    {"name": "c", "resources": {"requests": amounts, "claims": references}}
                ],
            },
        }
    )


@dataclass
class Place:
    """A short directory for one test: sockets, devices, claims, configuration, state."""

    root: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def path(self, name: str) -> Path:
        made = self.root / name
        made.mkdir(exist_ok=True)
        return made

    def device(self, name: str, *lines: str) -> None:
        path = self.path("devices")
        (path.parent / f"{name}.draft").write_text("\n".join((*lines, f"CARD={name}")))
        (path.parent / f"{name}.draft").rename(path / name)

    def claim(self, name: str, uid: str, *pods: str, device: str) -> cl.FetchedClaim:
        """Make a claim of one device of the sample driver."""
        made = claim(name, uid, *pods, devices={DRIVER: (device,)})
        (self.path("claims") / f"{NAMESPACE}.{name}.json").write_text(json.dumps(made))
        return fetched(made)

    def config(self, **extension: object) -> Path:
        path = self.root / "config.yaml"
        section = {
            "dra": {
                "enabled": True,
                "pluginsRegistry": str(self.path("pr")),
                "retryAfter": "100ms",
                "callTimeout": "2s",
            },
            "podResources": {},
            **extension,
        }
        path.write_text(yaml.safe_dump(document(self.root, **section)))
        return path

    def settings(self, **extension: object) -> Settings:
        return load_settings(self.config(**extension), os.environ, is_root=False)

    def driver(self, *options: str) -> subprocess.Popen[bytes]:
        """Start the sample driver."""
        return self.start(
            str(ROOT / "clients" / "examples" / "dra-driver" / "driver.py"),
            *("--name", DRIVER),
            *("--devices", str(self.path("devices"))),
            *("--claims", str(self.path("claims"))),
            *("--cdi", str(self.path("cdi"))),
            *("--plugin", str(self.path("plugin"))),
            *("--registry", str(self.path("pr"))),
            *("--journal", str(self.root / "journal")),
            *options,
        )

    def service(self, service: Service | None) -> subprocess.Popen[bytes]:
        """Start one service, or (None) all in one process, from the configuration."""
        named = "None" if service is None else f"Service.{service.name}"
        return self.start(
            "-c",
            "import sys; from pathlib import Path; from numalign.config.settings import Service;"
            "from numalign.process.serve import serve;"
            f"sys.exit(serve({named}, Path({str(self.root / 'config.yaml')!r})))",
        )

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.root / "log").open("ab") as log:
            process = subprocess.Popen([sys.executable, *arguments], stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def journal(self) -> list[str]:
        path = self.root / "journal"
        return path.read_text().splitlines() if path.exists() else []

    def done(self) -> Counter[str]:
        """What the driver has done about claims, and how often; not what it found done."""
        return Counter(
            line for line in self.journal() if line.startswith(("prepared", "unprepared"))
        )

    def left(self) -> list[str]:
        """The claims that the driver still holds."""
        return sorted(path.stem for path in (self.root / "plugin" / "prepared").glob("*.json"))

    def log(self) -> str:
        return (self.root / "log").read_text(errors="replace")


@contextmanager
def place() -> Iterator[Place]:
    """A directory whose processes are ended and whose files are removed."""
    made = Place(Path(tempfile.mkdtemp(prefix="na-")))
    try:
        yield made
    finally:
        for process in made.processes:
            end(process, signal.SIGKILL)
        shutil.rmtree(made.root)


@dataclass
class ClaimingAgent:
    """What a node agent does with pods that have claims."""

    stub: ad_grpc.AdmissionAsyncStub
    claims: dr_grpc.DynamicResourcesAsyncStub

    async def admit(self, pod: Pod) -> None:
        answer = await self.stub.Admit(ad.AdmitRequest(pod=pod), timeout=60)
        assert answer.verdict == pb.VERDICT_ADMITTED, answer

    async def prepare(self, pod: Pod, *claims: cl.FetchedClaim) -> ad.PreparePodResponse:
        request = ad.PreparePodRequest(pod=pod, claims=claims)
        return await self.stub.PreparePod(request, timeout=60)

    async def prepared(self, pod: Pod, *claims: cl.FetchedClaim) -> ad.PreparePodResponse:
        """Ask until it is done."""
        answers: list[ad.PreparePodResponse] = []

        async def done() -> bool:
            try:
                answers.append(await self.prepare(pod, *claims))
            except aio.AioRpcError:
                return False
            return answers[-1].verdict == pb.VERDICT_ADMITTED

        await until(done, "the claims are prepared")
        return answers[-1]

    async def container(self, pod_uid: str, name: str = "c") -> ad.PrepareContainerResponse:
        request = ad.PrepareContainerRequest(pod_uid=pod_uid, container_name=name)
        return await self.stub.PrepareContainer(request, timeout=60)

    async def release(self, pod_uid: str) -> None:
        await self.stub.Release(ad.ReleaseRequest(pod_uid=pod_uid), timeout=60)

    async def reconcile(self, *active: str) -> ad.ReconcileResponse:
        listed = await self.stub.ListAdmissions(ad.ListAdmissionsRequest(), timeout=60)
        return await self.stub.Reconcile(
            ad.ReconcileRequest(
                active_pod_uids=active, as_of_revision=listed.revision, sources_ready=True
            ),
            timeout=60,
        )

    async def kept(self) -> dr.ListClaimsResponse:
        return await self.claims.ListClaims(dr.ListClaimsRequest(), timeout=60)

    async def up(self) -> None:
        """Wait until Admission and the DRA service answer."""
        await until(self._answers, "the services are up")

    async def registered(self, count: int = 1) -> None:
        """Wait until so many plugins are there and answer."""

        async def there() -> bool:
            drivers = (await self.kept()).drivers
            return len(drivers) == count and all(each.connected for each in drivers)

        await until(there, f"{count} drivers are registered")

    async def _answers(self) -> bool:
        probe = ad.AdmitRequest(pod=claiming_pod("probe"), dry_run=True)
        try:
            await self.stub.Admit(probe, timeout=60)
            await self.kept()
        except aio.AioRpcError:
            return False
        return True


@asynccontextmanager
async def running(world: Place, **extension: object) -> AsyncIterator[ClaimingAgent]:
    """A node in this process, and an agent of it."""
    node = await Node.open(world.settings(**extension))
    try:
        for part in node.parts:
            await part.serving()
        for part in node.parts:
            await part.ready()
        yield ClaimingAgent(
            ad_grpc.AdmissionStub(node.channel(Service.ADMISSION)),
            dr_grpc.DynamicResourcesStub(node.channel(Service.DRA)),
        )
    finally:
        await node.close()


@asynccontextmanager
async def reached(world: Place) -> AsyncIterator[ClaimingAgent]:
    """An agent of a node in processes."""
    options = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 100)]
    run = world.root / "run"
    async with (
        aio.insecure_channel(f"unix:{run}/admission.sock", options=options) as admission,
        aio.insecure_channel(f"unix:{run}/dra.sock", options=options) as claims,
    ):
        agent = ClaimingAgent(
            ad_grpc.AdmissionStub(admission), dr_grpc.DynamicResourcesStub(claims)
        )
        await agent.up()
        yield agent


async def pod_resources(world: Place) -> list[prv1.PodResources]:
    """What the pod resources socket lists."""
    async with aio.insecure_channel(f"unix:{world.root}/run/pod-resources.sock") as channel:
        stub: Any = prv1_grpc.PodResourcesListerStub(channel)
        listed = await stub.List(prv1.ListPodResourcesRequest(), timeout=60, wait_for_ready=True)
        return list(listed.pod_resources)

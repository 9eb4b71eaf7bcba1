"""numalign on one node as its manifests have it: image, pod, API server, receiver of spans."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.deploy.manifests import Document, of_kind, pod_of, rendered
from tests.e2e.containerd import Containerd
from tests.e2e.deploy.builder import built_image
from tests.e2e.deploy.kubelet import Kubelet
from tests.e2e.deploy.network import (
    HOST,
    POD,
    behind_tls,
    certificate,
    inside_of,
    write_network,
)
from tests.e2e.deploy.volumes import Volumes
from tests.e2e.node import Node
from tests.integration.fake_api.server import TOKEN, FakeApiServer, fake_api_server
from tests.unit.telemetry.otlp import Receiver

OVERLAY = "overlays/collector"
"""As overlays/nri, with all sending spans. There is no collector to run: in its place a receiver
listens where it would."""

NAMESPACE = "numalign-system"
NODE = "node"
TAINT = {"key": "numalign.io/not-ready", "effect": "NoSchedule"}
NODE_CRITICAL = 2_000_001_000
"""What the priority class system-node-critical stands for."""

_RECEIVES = "127.0.0.1:4317"


class Deployment(Node):
    """The node, with the pod of the manifest; `told` are the spans."""

    def __init__(self, directory: Path, api: FakeApiServer) -> None:
        super().__init__(directory, api)
        self.template = without_collector(pod_of(OVERLAY))
        self.host = directory / "host"
        self.containerd = Containerd(directory, apart=True)
        self.containerd.nri_socket = self.host / "var/run/nri/nri.sock"
        self.pod_directory = directory / "pod"
        # Where the services have their sockets, seen from outside of their pod.
        self.socket = self.pod_directory / "sockets" / "sockets" / "admission.sock"
        self.logs = directory / "numalign-logs"
        api.store.create("nodes", "", node_object())
        pod = api.store.create("pods", NAMESPACE, pod_object(self.template))
        self.kubelet = Kubelet(
            self.containerd.cri,
            self.template,
            pod["metadata"],
            logs=self.logs,
            cgroup=self.containerd.cgroup,
        )
        self.receiver: Receiver | None = None

    async def start(self, image: Path) -> None:
        """Start everything, until every startup probe has passed."""
        write_network(self.directory)
        await self.containerd.start()
        await self.containerd.import_images()
        await self.containerd.import_image(image)
        chain, key = certificate(self.directory)
        volumes = Volumes(self.pod_directory, self.host, rendered(OVERLAY))
        token = {"token": TOKEN, "ca.crt": chain.read_text(), "namespace": NAMESPACE}
        mounted = volumes.made(self.template["spec"], token)
        holder = await self.kubelet.start_sandbox()
        self.receiver = inside_of(holder, lambda: Receiver(_RECEIVES))
        self.receiver.__enter__()
        port = int(self.api.url.rpartition(":")[2])
        self._front = await behind_tls(chain, key, port)
        environment = {
            "KUBERNETES_SERVICE_HOST": HOST,
            "KUBERNETES_SERVICE_PORT": str(self._front.sockets[0].getsockname()[1]),
            "spec.nodeName": NODE,
        }
        await self.kubelet.start_containers(environment, mounted, POD)

    async def stop(self) -> None:
        """Remove every pod, and the runtime."""
        try:
            await self.containerd.remove_pods()
        finally:
            await self.containerd.close()
            if self.receiver is not None:
                self.receiver.__exit__(None, None, None)
                self._front.close()

    def told(self) -> str:
        """What everybody said, for a failure."""
        return f"{self.kubelet.told()}\n{super().told()}"


def without_collector(template: Document) -> Document:
    """The pod but for the container whose image is somebody else's."""
    spec = template["spec"]
    containers = [each for each in spec["containers"] if each["name"] != "collector"]
    volumes = [each for each in spec["volumes"] if each["name"] != "collector"]
    return {**template, "spec": {**spec, "containers": containers, "volumes": volumes}}


def pod_object(template: Document) -> dict[str, Any]:
    """The pod as the controller of the DaemonSet makes it, with what an API server adds."""
    metadata = {**template["metadata"], "name": "numalign-1"}
    spec = {**template["spec"], "nodeName": NODE, "priority": NODE_CRITICAL}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def node_object() -> dict[str, Any]:
    """A node that has just joined."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE},
        "spec": {"taints": [TAINT]},
    }


@asynccontextmanager
async def deployed(directory: Path) -> AsyncIterator[Deployment]:
    """A deployment inside of the block."""
    image = directory / "image.tar"
    (daemon_set,) = of_kind(rendered(OVERLAY), "DaemonSet")
    (name,) = {
        container["image"]
        for container in without_collector(daemon_set["spec"]["template"])["spec"]["containers"]
    }
    await asyncio.to_thread(built_image, f"docker.io/library/{name}", image)
    async with fake_api_server() as api:
        deployment = Deployment(directory, api)
        try:
            await deployment.start(image)
            yield deployment
        finally:
            await deployment.stop()
            await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)

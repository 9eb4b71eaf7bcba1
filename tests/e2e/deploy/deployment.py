"""numalign on one node as its manifests have it: image, pod, API server, receiver of spans."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.deploy.manifests import Document, pod_of, rendered
from tests.e2e.containerd import Containerd
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

NAMESPACE = "numalign-system"
NODE = "node"
TAINT = {"key": "numalign.io/not-ready", "effect": "NoSchedule"}
NODE_CRITICAL = 2_000_001_000
"""What the priority class system-node-critical stands for."""

_RECEIVES = "127.0.0.1:4317"


class Deployment(Node):
    """The node, with the pod of a kustomization.

    There is no OpenTelemetry collector to run: in its place a receiver listens where it would.
    """

    def __init__(
        self, directory: Path, api: FakeApiServer, containerd: Containerd, kustomization: str
    ) -> None:
        """`kustomization` is one of deploy/kustomize, or the path of another one."""
        super().__init__(directory, api)
        self.containerd = containerd
        self.template = without_collector(pod_of(kustomization))
        self.volumes = Volumes(directory / "pod", host_of(containerd), rendered(kustomization))
        # Where the services have their sockets, seen from outside of their pod.
        self.socket = directory / "pod" / "sockets" / "sockets" / "admission.sock"
        self.logs = directory / "numalign-logs"
        api.has_custom = True  # deploy/crds is applied
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
        self._front: asyncio.Server | None = None

    async def start(self) -> None:
        """Start everything, until every startup probe has passed."""
        chain, key = certificate(self.directory)
        token = {"token": TOKEN, "ca.crt": chain.read_text(), "namespace": NAMESPACE}
        mounted = self.volumes.made(self.template["spec"], token)
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
        """Remove every pod."""
        try:
            await self.containerd.remove_pods()
        finally:
            if self.receiver is not None:
                self.receiver.__exit__(None, None, None)
            if self._front is not None:
                self._front.close()

    async def until_taint_is_gone(self) -> None:
        """Wait until the node may have pods."""

        def taints() -> Any:
            return self.api.store.get("nodes", "", NODE)["spec"].get("taints")

        await self.until(lambda: not taints(), "the taint is removed")

    def told(self) -> str:
        """What everybody said, for a failure."""
        return f"{self.kubelet.told()}\n{super().told()}"


def image_of(kustomization: str) -> str:
    """The full name of the one image that its containers have."""
    (name,) = {
        each["image"] for each in without_collector(pod_of(kustomization))["spec"]["containers"]
    }
    return f"docker.io/library/{name}"


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


def host_of(containerd: Containerd) -> Path:
    """The root of the node that pods see, but for the directories that are what they are."""
    return containerd.directory / "host"


@asynccontextmanager
async def runtime(image: Path) -> AsyncIterator[Containerd]:
    """A container runtime inside of the block, which has the image."""
    directory = Path(tempfile.mkdtemp(prefix="nad-", dir="/tmp"))  # short, for the sockets' sake
    write_network(directory)
    containerd = Containerd(directory, apart=True)
    containerd.nri_socket = host_of(containerd) / "var/run/nri/nri.sock"
    try:
        try:
            await containerd.start()
            await containerd.import_images()
            await containerd.import_image(image)
            yield containerd
        finally:
            await containerd.close()
    finally:
        await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)


@asynccontextmanager
async def deployed(kustomization: str, containerd: Containerd) -> AsyncIterator[Deployment]:
    """A deployment inside of the block, one at a time. What is on the node is gone afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="d-", dir=containerd.directory))
    async with fake_api_server() as api:
        deployment = Deployment(directory, api, containerd, kustomization)
        try:
            await deployment.start()
            yield deployment
        finally:
            sys.stdout.write(deployment.told())  # shown for a test that failed
            await deployment.stop()
            for left in (directory, host_of(containerd) / "var/lib"):
                await asyncio.to_thread(shutil.rmtree, left, ignore_errors=True)

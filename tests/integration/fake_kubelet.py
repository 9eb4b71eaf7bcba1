"""A kubelet's pod resources socket as a process: it tells what a file says, read at each call.

    python tests/integration/fake_kubelet.py SOCKET FILE

The file is a JSON object: `allocatable` and `pods` are the answers of the interface as JSON,
`serves_get` says whether Get is there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.json_format import ParseDict

from numalign.kube.podresources.v1 import api_pb2 as v1
from numalign.kube.podresources.v1 import api_pb2_grpc as v1_grpc


class Lister(v1_grpc.PodResourcesListerServicer):
    """Serves one file."""

    def __init__(self, told: Path) -> None:
        self._told = told

    def List(self, request: Any, context: Any) -> Any:  # noqa: N802 - the interface's
        del request, context
        return ParseDict({"pod_resources": self._read()["pods"]}, v1.ListPodResourcesResponse())

    def Get(self, request: Any, context: Any) -> Any:  # noqa: N802 - the interface's
        read = self._read()
        if not read["serves_get"]:
            context.abort(grpc.StatusCode.UNKNOWN, "PodResources API Get method disabled")
        for pod in read["pods"]:
            if (pod["name"], pod["namespace"]) == (request.pod_name, request.pod_namespace):
                return ParseDict({"pod_resources": pod}, v1.GetPodResourcesResponse())
        text = f"pod {request.pod_name} in namespace {request.pod_namespace} not found"
        return context.abort(grpc.StatusCode.UNKNOWN, text)

    def GetAllocatableResources(self, request: Any, context: Any) -> Any:  # noqa: N802 - as above
        del request, context
        return ParseDict(self._read()["allocatable"], v1.AllocatableResourcesResponse())

    def _read(self) -> Any:
        return json.loads(self._told.read_text())


class FakeKubelet:
    """Starts and stops the process, and says what it tells."""

    def __init__(self, directory: Path) -> None:
        self.socket = directory / "kubelet.sock"
        self._file = directory / "kubelet.json"
        self._process: subprocess.Popen[bytes] | None = None
        self.tell((), ())

    def tell(
        self,
        devices: Iterable[dict[str, Any]],
        pods: Iterable[dict[str, Any]],
        *,
        serves_get: bool = True,
    ) -> None:
        """From now on these devices can be given out, and these pods are there."""
        read = {"allocatable": {"devices": list(devices)}, "pods": list(pods)}
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps({**read, "serves_get": serves_get}))
        fresh.rename(self._file)

    def start(self) -> None:
        """Start it, and wait for its socket."""
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(self.socket), str(self._file)]
        )
        deadline = time.monotonic() + 60
        while not self.socket.exists():
            assert self._process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def stop(self) -> None:
        """End it, if it runs."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=60)
            self._process = None
            self.socket.unlink(missing_ok=True)


def device(resource: str, id_: str, *nodes: int) -> dict[str, Any]:
    """A device as the interface tells it; without nodes it has no topology."""
    made: dict[str, Any] = {"resource_name": resource, "device_ids": [id_]}
    if nodes:
        made["topology"] = {"nodes": [{"ID": node} for node in nodes]}
    return made


def holding(pod: str, **containers: list[dict[str, Any]]) -> dict[str, Any]:
    """A pod of the namespace `default` and the devices of its containers."""
    return {
        "name": pod,
        "namespace": "default",
        "containers": [{"name": name, "devices": held} for name, held in containers.items()],
    }


def main(socket: str, told: str) -> None:
    """Serve until the process is ended."""
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
    v1_grpc.add_PodResourcesListerServicer_to_server(Lister(Path(told)), server)
    server.add_insecure_port(f"unix://{socket}")
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Real processes of numalign on a made-up machine, with the pod resources socket turned on."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
import yaml

from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_json import pod_from_json
from numalign.v1 import admission_pb2 as ad
from numalign.v1.admission_pb2_grpc import AdmissionStub

GPU = "example.com/gpu"
FPGA = "example.com/fpga"

_SERVE = (
    "import sys; from pathlib import Path; from numalign.config.settings import Service; "
    "from numalign.process.serve import serve; "
    "name = sys.argv[2]; "
    "sys.exit(serve(None if name == 'all' else Service(name), Path(sys.argv[1])))"
)


class ServedNode:
    """A directory with a configuration, and the processes that were started on it."""

    def __init__(self, directory: Path, section: Mapping[str, Any] | None = None) -> None:
        self.directory = directory
        self._config = directory / "config.yaml"
        self._config.write_text(yaml.safe_dump(document(directory, section or {})))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def pod_resources(self) -> Path:
        return self.directory / "run" / "pod-resources.sock"

    def start(self, *services: str) -> None:
        """Start a process for each service, or one for `all`."""
        for service in services:
            log = (self.directory / f"{service}.log").open("ab")
            self._processes[service] = subprocess.Popen(
                [sys.executable, "-c", _SERVE, str(self._config), service], stdout=log, stderr=log
            )
            log.close()
        for service in services:
            self._wait_for(self.directory / "run" / socket_name(service))

    def stop(self, *services: str) -> None:
        """End these processes in order, or all; each has to end well."""
        for service in services or tuple(self._processes):
            process = self._processes.pop(service)
            process.terminate()
            code = process.wait(timeout=30)
            assert code == 0, (self.directory / f"{service}.log").read_text()

    def kill(self, service: str) -> None:
        """End a process without asking it."""
        process = self._processes.pop(service)
        process.kill()
        process.wait()
        (self.directory / "run" / socket_name(service)).unlink()

    def reload(self, service: str) -> None:
        """Have a process read the configuration again."""
        self._processes[service].send_signal(signal.SIGHUP)

    def admission(self) -> tuple[grpc.Channel, Any]:
        """A channel to Admission, and its stub."""
        socket = self.directory / "run" / "admission.sock"
        channel = grpc.insecure_channel(
            f"unix://{socket}", options=[("grpc.initial_reconnect_backoff_ms", 100)]
        )
        return channel, AdmissionStub(channel)

    def admit(self, pod: core_pb2.Pod) -> ad.AdmitResponse:
        """Have a pod admitted; asks again while services find each other."""
        channel, stub = self.admission()
        deadline = time.monotonic() + 60
        with channel:
            while True:
                try:
                    response: ad.AdmitResponse = stub.Admit(
                        ad.AdmitRequest(pod=pod), timeout=60, wait_for_ready=True
                    )
                except grpc.RpcError as error:
                    unavailable = error.code() == grpc.StatusCode.UNAVAILABLE
                    if not unavailable or time.monotonic() > deadline:
                        raise
                    time.sleep(0.1)
                else:
                    return response

    def release(self, pod_uid: str) -> None:
        """The pod ended."""
        channel, stub = self.admission()
        with channel:
            stub.Release(ad.ReleaseRequest(pod_uid=pod_uid), timeout=60)

    def _wait_for(self, socket: Path) -> None:
        deadline = time.monotonic() + 60
        while not socket.exists():
            ended = [name for name, p in self._processes.items() if p.poll() is not None]
            if ended or time.monotonic() > deadline:
                logs = [(self.directory / f"{name}.log").read_text() for name in ended]
                raise AssertionError(f"{socket} did not appear; ended: {ended}: {logs}")
            time.sleep(0.05)


def socket_name(service: str) -> str:
    return "admission.sock" if service == "all" else f"{service}.sock"


def document(directory: Path, section: Mapping[str, Any]) -> dict[str, Any]:
    """Two NUMA nodes of four cores with two threads; four GPUs on them and one FPGA on none."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "topologyManagerPolicy": "best-effort",
        "cpuManagerPolicy": "static",
        "memoryManagerPolicy": "Static",
        "reservedSystemCPUs": "0,8",
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
        "numalign": {
            "machine": machine(),
            "runtimeDirectory": str(directory / "run"),
            "stateDirectory": str(directory / "state"),
            "nodeAllocatableReservation": {"memory": "1Gi"},
            "podResources": {},
            "devices": [
                {
                    "resource": GPU,
                    "devices": [{"id": f"g{i}", "numa_nodes": [i // 2]} for i in range(4)]
                    + [{"id": "bridge", "numa_nodes": [0, 1]}],
                    "preferred_allocation": "lowest-id",
                },
                {
                    "resource": FPGA,
                    "devices": [{"id": "f0"}, {"id": "f1", "healthy": False}],
                },
            ],
            **section,
        },
    }


def machine() -> dict[str, Any]:
    return {
        "numa_nodes": [
            {
                "id": node,
                "memory_bytes": 16 << 30,
                "distances": [10, 20] if node == 0 else [20, 10],
                "cores": [
                    {"id": c, "socket_id": node, "threads": [node * 4 + c, 8 + node * 4 + c]}
                    for c in range(4)
                ],
            }
            for node in range(2)
        ]
    }


def pod(name: str, spec: Mapping[str, Any], namespace: str = "default") -> core_pb2.Pod:
    """A pod with this spec; its UID is `uid-` and its name."""
    return pod_from_json(
        {
            "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"},
            "spec": spec,
        }
    )


def container(name: str, restart: str | None = None, **amounts: str) -> dict[str, Any]:
    """A container whose requests and limits are these; `gpu` and `fpga` stand for resources."""
    names = {"gpu": GPU, "fpga": FPGA}
    resources = {names.get(key, key): value for key, value in amounts.items()}
    made: dict[str, Any] = {"name": name}
    if resources:
        made["resources"] = {"limits": resources, "requests": resources}
    if restart is not None:
        made["restartPolicy"] = restart
    return made

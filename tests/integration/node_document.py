"""A small node to run services on: its configuration, and pods that ask for a piece of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_json import pod_from_json

GPU = "example.com/gpu"
CORES_PER_NODE = 4
GPUS = 4
RESERVED_CPUS = "0,8"


def machine() -> dict[str, Any]:
    """Two NUMA nodes of four cores with two threads each, and 16 GiB."""
    return {
        "numa_nodes": [
            {
                "id": node,
                "memory_bytes": 16 << 30,
                "distances": [10, 20] if node == 0 else [20, 10],
                "cores": [
                    {
                        "id": core,
                        "socket_id": node,
                        "threads": [
                            node * CORES_PER_NODE + core,
                            2 * CORES_PER_NODE + node * CORES_PER_NODE + core,
                        ],
                    }
                    for core in range(CORES_PER_NODE)
                ],
            }
            for node in range(2)
        ]
    }


def document(directory: Path, **extension: object) -> dict[str, Any]:
    """A configuration with static CPU and memory managers over that machine."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "topologyManagerPolicy": "single-numa-node",
        "cpuManagerPolicy": "static",
        "memoryManagerPolicy": "Static",
        "reservedSystemCPUs": RESERVED_CPUS,
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
        "numalign": {
            "machine": machine(),
            "stateDirectory": str(directory / "state"),
            "runtimeDirectory": str(directory / "run"),
            "nodeAllocatableReservation": {"memory": "1Gi"},
            "log": {"level": "warning"},
            "devices": [
                {
                    "resource": GPU,
                    "devices": [
                        {"id": f"g{n}", "numa_nodes": [n // (GPUS // 2)]} for n in range(GPUS)
                    ],
                    "preferred_allocation": "lowest-id",
                }
            ],
            **extension,
        },
    }


def write_document(directory: Path, **extension: object) -> Path:
    """The configuration as a file in `directory`."""
    path = directory / "config.yaml"
    path.write_text(yaml.safe_dump(document(directory, **extension)))
    return path


def pod(
    uid: str, *, cpu: int = 1, memory: str = "1Gi", gpus: int = 1, init_cpu: int = 0
) -> core_pb2.Pod:
    """A Guaranteed pod with a container `c`, after an init container `i` if `init_cpu`."""

    def container(name: str, cpus: int, devices: int) -> dict[str, Any]:
        amounts = {"cpu": str(cpus), "memory": memory}
        if devices:
            amounts[GPU] = str(devices)
        return {"name": name, "resources": {"limits": amounts, "requests": amounts}}

    spec: dict[str, Any] = {"containers": [container("c", cpu, gpus)]}
    if init_cpu:
        spec["initContainers"] = [container("i", init_cpu, 0)]
    return pod_from_json(
        {"metadata": {"name": uid, "namespace": "default", "uid": uid}, "spec": spec}
    )

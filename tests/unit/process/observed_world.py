"""A small machine and its pods, for tests of what services tell about themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from numalign.config.loader import load_settings
from numalign.config.settings import Settings
from numalign.kube.core.v1.core_pb2 import Pod
from numalign.kube.pod_json import pod_from_json

GPU = "example.com/gpu"


def document(directory: Path, **numalign: Any) -> dict[str, Any]:
    """Two NUMA nodes of 4 cores with 2 threads, 2 devices on each; 2 CPUs are reserved."""
    nodes = [
        {
            "id": node,
            "memory_bytes": 16 << 30,
            "hugepages": [],
            "distances": [10, 20] if node == 0 else [20, 10],
            "cores": [
                {
                    "id": core,
                    "socket_id": node,
                    "threads": [node * 4 + core, 8 + node * 4 + core],
                    "uncore_cache_id": node,
                }
                for core in range(4)
            ],
        }
        for node in range(2)
    ]
    devices = [{"id": f"g{i}", "numa_nodes": [i // 2], "healthy": True} for i in range(4)]
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "topologyManagerPolicy": "single-numa-node",
        "cpuManagerPolicy": "static",
        "memoryManagerPolicy": "Static",
        "reservedSystemCPUs": "0,8",
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
        "numalign": {
            "machine": {"numa_nodes": nodes},
            "stateDirectory": str(directory / "state"),
            "runtimeDirectory": str(directory / "run"),
            "nodeAllocatableReservation": {"memory": "1Gi"},
            "devices": [{"resource": GPU, "devices": devices}],
            **numalign,
        },
    }


def write(directory: Path, **numalign: Any) -> Path:
    """The configuration file in `directory`."""
    path = directory / "config.yaml"
    path.write_text(yaml.safe_dump(document(directory, **numalign)))
    return path


def settings(directory: Path, **numalign: Any) -> Settings:
    """The settings; metrics are on unless told otherwise."""
    numalign.setdefault("metrics", {"address": "127.0.0.1:0"})
    return load_settings(write(directory, **numalign), {}, False)


def pod(name: str, cpu: str = "2", gpu: str = "1") -> Pod:
    """A Guaranteed pod with one container."""
    resources = {"cpu": cpu, "memory": "1Gi", GPU: gpu}
    return pod_from_json(
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {
                "containers": [
                    {"name": "c", "resources": {"limits": resources, "requests": resources}}
                ]
            },
        }
    )


def samples(text: str) -> dict[str, float]:
    """Value by series, as `name{label=value,...}` with labels in order of name."""
    return {
        sample.name
        + (
            "{" + ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items())) + "}"
            if sample.labels
            else ""
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def lines(text: str) -> list[dict[str, Any]]:
    """Log lines."""
    return [json.loads(line) for line in text.splitlines()]

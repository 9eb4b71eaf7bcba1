"""Nodes with many NUMA nodes to run services on, and pods that ask for a share of them.

A shape is what one such machine looks like; the benchmarks that use it do not care how a
configuration is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from numalign.kube.core.v1 import core_pb2
from numalign.kube.pod_json import pod_from_json

GPU, NIC = "example.com/gpu", "example.com/nic"
PACKAGES = 2
THREADS = 2
_GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A machine: the nodes from 0 that have CPUs and memory, and all nodes there are.

    Devices are spread over the nodes with CPUs. Nodes of `extra_memory_gib` come behind those
    with CPUs and have memory alone; what remains of `nodes` has nothing.
    """

    nodes: int
    cpu_nodes: int
    cores_per_node: int
    memory_gib: int = 32
    extra_memory_nodes: int = 0
    gpus: int = 8
    nics: int = 8

    reserved_cpus: int = 1
    reserved_memory_gib: int = 1

    @property
    def cpus(self) -> int:
        """Logical CPUs of the whole machine."""
        return self.cpu_nodes * self.cores_per_node * THREADS

    @property
    def machine(self) -> dict[str, Any]:
        """The machine as a document."""
        return {"numa_nodes": [self._node(node) for node in range(self.nodes)]}

    def _node(self, node: int) -> dict[str, Any]:
        has_memory = node < self.cpu_nodes + self.extra_memory_nodes
        return {
            "id": node,
            "memory_bytes": self.memory_gib * _GIB if has_memory else 0,
            "distances": [self._apart(node, other) for other in range(self.nodes)],
            "cores": [self._core(node, core) for core in range(self.cores_per_node)]
            if node < self.cpu_nodes
            else [],
        }

    def _core(self, node: int, core: int) -> dict[str, Any]:
        number = node * self.cores_per_node + core
        cores = self.cpu_nodes * self.cores_per_node
        return {
            "id": number,
            "socket_id": self._package(node),
            "threads": [number + thread * cores for thread in range(THREADS)],
        }

    def _package(self, node: int) -> int:
        return node * PACKAGES // self.cpu_nodes

    def _apart(self, one: int, other: int) -> int:
        if one == other:
            return 10
        if max(one, other) >= self.cpu_nodes:
            return 80
        if self._package(one) != self._package(other):
            return 32
        return 11 if one // 4 == other // 4 else 12

    def devices(self) -> list[dict[str, Any]]:
        """A resource of GPUs and one of network cards, spread evenly."""
        return [
            {
                "resource": resource,
                "devices": [
                    {"id": f"d{number:02}", "numa_nodes": [number * self.cpu_nodes // count]}
                    for number in range(count)
                ],
            }
            for resource, count in ((GPU, self.gpus), (NIC, self.nics))
        ]


TWO = Shape(nodes=2, cpu_nodes=2, cores_per_node=72, memory_gib=240)
"""Two nodes of 144 CPUs: what `TWO_OF_36` is without its other nodes."""

TWO_OF_36 = Shape(nodes=36, cpu_nodes=2, cores_per_node=72, memory_gib=240, extra_memory_nodes=4)
"""Two nodes with CPUs, four with the memory of an accelerator, and thirty with nothing."""

ALL_OF_32 = Shape(nodes=32, cpu_nodes=32, cores_per_node=8, gpus=32, nics=16)
"""Two packages of 16 last-level caches with 16 CPUs each."""

ALL_OF_64 = Shape(nodes=64, cpu_nodes=64, cores_per_node=8, gpus=64, nics=16)
"""The same with twice as many caches."""


def write_document(directory: Path, shape: Shape, **extension: object) -> Path:
    """A configuration with every manager on over that machine, as a file in `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    reserved = f"{shape.reserved_memory_gib}Gi"
    document = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "topologyManagerPolicy": "best-effort",
        "topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "true"},
        "cpuManagerPolicy": "static",
        "memoryManagerPolicy": "Static",
        "reservedSystemCPUs": f"0-{shape.reserved_cpus - 1}",
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": reserved}}],
        "numalign": {
            "machine": shape.machine,
            "stateDirectory": str(directory / "state"),
            "runtimeDirectory": str(directory / "run"),
            "nodeAllocatableReservation": {"memory": reserved},
            "log": {"level": "warning"},
            "devices": shape.devices(),
            **extension,
        },
    }
    path = directory / "config.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def pod(uid: str, *, cpus: int, memory_gib: int, gpus: int, nics: int) -> core_pb2.Pod:
    """A Guaranteed pod with one container; a resource of which it asks nothing is left out."""
    amounts = {"cpu": str(cpus), "memory": f"{memory_gib}Gi"}
    amounts |= {name: str(count) for name, count in ((GPU, gpus), (NIC, nics)) if count}
    container = {"name": "c", "resources": {"limits": amounts, "requests": amounts}}
    return pod_from_json(
        {
            "metadata": {"name": uid, "namespace": "default", "uid": uid},
            "spec": {"containers": [container]},
        }
    )

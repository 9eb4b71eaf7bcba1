"""What the pictures show: machines, configurations and pods. The decisions are numalign's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Pod:
    """Containers by the CPUs and the memory that each asks for."""

    name: str
    containers: Mapping[str, tuple[int, str]]

    def manifest(self) -> dict[str, Any]:
        """The pod as Kubernetes has it."""
        containers = [
            {
                "name": name,
                "image": "i",
                "resources": {"limits": {"cpu": str(cpus), "memory": memory}},
            }
            for name, (cpus, memory) in self.containers.items()
        ]
        metadata = {"name": self.name, "uid": self.name}
        spec = {"containers": containers}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@dataclass(frozen=True, slots=True)
class Cell:
    """One node with the pods that come to it in order; the last one is what it is about."""

    caption: str
    pods: tuple[Pod, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """Cells side by side."""

    heading: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """One file. `shows` is what of a machine is drawn: `cpus`, `memory` or both."""

    name: str
    title: str
    machine: Mapping[str, Any]
    rows: tuple[Row, ...]
    shows: frozenset[str] = frozenset({"cpus"})


def machine(nodes: int, sockets: int = 2, cache_of: int = 0) -> dict[str, Any]:
    """A machine with four cores of two threads on each NUMA node.

    With `cache_of`, so many neighbouring cores share a last-level cache.
    """
    threads = nodes * 4
    made = []
    for node in range(nodes):
        cores = []
        for core in range(node * 4, node * 4 + 4):
            one = {"id": core, "socket_id": node * sockets // nodes}
            one["threads"] = [core, core + threads]
            if cache_of:
                one["uncore_cache_id"] = core // cache_of
            cores.append(one)
        made.append({"id": node, "memory_bytes": 16 << 30, "cores": cores})
    return {"machine": {"numa_nodes": made}}


def one(name: str, cpus: int, memory: str = "1Gi") -> Pod:
    """A pod with one container."""
    return Pod(name, {"app": (cpus, memory)})


_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")


def _by_policy(heading: str, *pods: Pod) -> Row:
    return Row(
        heading, tuple(Cell(name, pods, {"topologyManagerPolicy": name}) for name in _POLICIES)
    )


def _scope(scope: str, pod: Pod) -> Cell:
    settings = {"topologyManagerPolicy": "single-numa-node", "topologyManagerScope": scope}
    return Cell(f"scope {scope}", (pod,), settings)


def _option(caption: str, pod: Pod, option: str = "", policy: str = "best-effort") -> Cell:
    settings: dict[str, Any] = {"topologyManagerPolicy": policy}
    if option:
        settings["cpuManagerPolicyOptions"] = {option: "true"}
        settings["featureGates"] = {"CPUManagerPolicyAlphaOptions": True}
    return Cell(caption, (pod,), settings)


def _with_memory(caption: str, *pods: Pod) -> Cell:
    reserved = [{"numaNode": 0, "limits": {"memory": "100Mi"}}]
    settings = {
        "topologyManagerPolicy": "best-effort",
        "memoryManagerPolicy": "Static",
        "reservedMemory": reserved,
    }
    return Cell(caption, pods, settings)


TWO = machine(2)

PICTURES = (
    Picture(
        "topology-policies",
        "The same pod under the four policies of the Topology Manager",
        TWO,
        (
            _by_policy("asks 4 CPUs; one node has them", one("first", 4), one("new", 4)),
            _by_policy(
                "asks 6; an empty node would have them",
                one("first", 4), one("second", 4), one("new", 6),
            ),
            _by_policy("asks 10; no node has so many", one("new", 10)),
        ),
    ),
    Picture(
        "topology-scopes",
        "A pod of two containers with 4 CPUs each, under single-numa-node",
        TWO,
        (
            Row(
                "two containers",
                tuple(
                    _scope(scope, Pod("new", {"a": (4, "1Gi"), "b": (4, "1Gi")}))
                    for scope in ("container", "pod")
                ),
            ),
        ),
    ),
    Picture(
        "cpu-options",
        "The same request without and with an option of the static CPU policy",
        TWO,
        (
            Row(
                "3 CPUs",
                (
                    _option("no option", one("new", 3)),
                    _option("full-pcpus-only", one("new", 3), "full-pcpus-only"),
                    _option(
                        "distribute-cpus-across-cores",
                        one("new", 3),
                        "distribute-cpus-across-cores",
                    ),
                ),
            ),
            Row(
                "10 CPUs",
                (
                    _option("no option", one("new", 10)),
                    _option(
                        "distribute-cpus-across-numa",
                        one("new", 10),
                        "distribute-cpus-across-numa",
                    ),
                ),
            ),
        ),
    ),
    Picture(
        "cpu-caches",
        "Cores in pairs share a last-level cache",
        machine(2, cache_of=2),
        (
            Row(
                "4 CPUs",
                (
                    _option("no option", one("new", 4)),
                    _option(
                        "prefer-align-cpus-by-uncorecache",
                        one("new", 4),
                        "prefer-align-cpus-by-uncorecache",
                    ),
                ),
            ),
        ),
    ),
    Picture(
        "memory-groups",
        "The static memory policy: one NUMA node, or a group of them",
        TWO,
        (
            Row(
                "memory",
                (
                    _with_memory("a pod of 6Gi, then one of 8Gi",
                                 one("first", 1, "6Gi"), one("new", 1, "8Gi")),
                    _with_memory("a pod of 20Gi, then one of 4Gi",
                                 one("first", 1, "20Gi"), one("new", 1, "4Gi")),
                    _with_memory("a pod of 6Gi, then one of 20Gi",
                                 one("first", 1, "6Gi"), one("new", 1, "20Gi")),
                ),
            ),
        ),
        frozenset({"memory"}),
    ),
)  # fmt: skip

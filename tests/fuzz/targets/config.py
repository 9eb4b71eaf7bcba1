"""Decoded configurations, with odd values in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.fuzz.bending import MOST_BYTES, bent, starts
from tests.fuzz.target import Target
from tests.integration.node_document import document

from numalign.config.defaults import Defaults, Directories
from numalign.config.from_document import settings_from_document
from numalign.config.settings import MachineSource
from numalign.errors import ConfigError


def _other_file(path: Path) -> object:
    return {"devices": []}


def _capacity(machine: MachineSource) -> int:
    return 32 << 30


DEFAULTS = Defaults(
    directories=Directories(runtime=Path("/run/n"), state=Path("/var/n")),
    base_directory=Path("/etc/n"),
    read_file=_other_file,
    memory_capacity=_capacity,
)

KUBELET: dict[str, Any] = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "topologyManagerPolicy": "restricted",
    "topologyManagerScope": "pod",
    "topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "true"},
    "cpuManagerPolicy": "static",
    "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
    "cpuManagerReconcilePeriod": "5s",
    "memoryManagerPolicy": "Static",
    "reservedMemory": [
        {"numaNode": 0, "limits": {"memory": "1100Mi"}},
        {"numaNode": 1, "limits": {"hugepages-2Mi": "4Mi"}},
    ],
    "kubeReserved": {"cpu": "500m", "memory": "500Mi"},
    "systemReserved": {"cpu": "1500m", "memory": "500Mi"},
    "evictionHard": {"memory.available": "100Mi", "nodefs.available": "10%"},
    "featureGates": {"CPUManagerPolicyAlphaOptions": True, "MemoryManager": True},
    "cgroupDriver": "systemd",
}


def _documents() -> tuple[dict[str, Any], ...]:
    node = document(Path("/var/lib/n"))
    devices = node.pop("numalign")
    core = {"id": 0, "socket_id": 0, "threads": [0, 8]}
    machine = {"numa_nodes": [{"id": 0, "memory_bytes": 1 << 30, "cores": [core]}]}
    extension = {
        "machine": machine,
        "validation": "none",
        "compatibility": "kubelet",
        "providerTimeout": "500ms",
        "queueDepth": 10,
        "owner": "kubelet",
        "sockets": {"directoryMode": "0750", "mode": "0660", "uids": [0], "gids": [0]},
        "limits": {"maxConcurrentCalls": 10},
        "devices": devices["devices"],
        "nodeAllocatableReservation": {"memory": "1Gi", "cpu": "1"},
    }
    return (
        KUBELET,
        {**node, "numalign": {"validation": "none"}},
        {"numalign": extension},
        {**KUBELET, "evictionHard": {"memory.available": "5%"}},
        {},
    )


DOCUMENTS = _documents()
SEEDS = tuple(json.dumps(each) for each in DOCUMENTS)


def run(data: bytes) -> None:
    """Read a configuration."""
    settings_from_document(bent(SEEDS, data), DEFAULTS)


TARGET = Target(
    name="config",
    run=run,
    documented=(ConfigError,),
    seeds=starts(SEEDS),
    most_bytes=MOST_BYTES,
    counts=False,
)

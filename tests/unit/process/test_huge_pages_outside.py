"""Huge pages that somebody uses without a booking: told by the memory service's status."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

from numalign.config.loader import load_settings
from numalign.config.settings import Service
from numalign.process.node import Node
from numalign.v1 import control_pb2 as ct
from numalign.v1.control_pb2_grpc import ControlStub

TREE = Path(__file__).parents[2] / "fixtures" / "sysfs" / "2s-hugepages-1g.tar.gz"
POOL = "sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages"


async def test_status_tells_while_it_is_so(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with tarfile.open(TREE) as archive:
        archive.extractall(root, filter="fully_trusted")
    free = root / POOL
    free.chmod(0o644)
    config = tmp_path / "config.json"
    document = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "memoryManagerPolicy": "Static",
        "evictionHard": {"memory.available": "100Mi"},
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "100Mi"}}],
        "numalign": {"machine": {"root": str(root)}, "secondOwner": "tolerate"},
    }
    config.write_text(json.dumps(document), encoding="utf-8")
    places = {"runtimeDirectory": str(tmp_path / "r"), "stateDirectory": str(tmp_path / "s")}
    node = await Node.open(load_settings(config, {}, is_root=False, overrides=places))
    try:
        stub = ControlStub(node.channel(Service.MEMORY))

        async def told() -> list[str]:
            answer = await stub.GetStatus(ct.GetStatusRequest())
            return [line for line in answer.reports if "in the kernel" in line]

        at_first = await told()
        free.write_text("56\n")
        in_use = await told()
        free.write_text("256\n")
        after = await told()
    finally:
        await node.close()

    assert at_first == after == []
    (line,) = in_use
    assert line.startswith(
        "hugepages-2Mi on NUMA node 1: 112Mi free in the kernel, 512Mi in the books: at least 400Mi"
    )

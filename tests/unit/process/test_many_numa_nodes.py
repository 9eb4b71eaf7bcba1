"""Whole nodes with many NUMA nodes: pods are admitted as on small machines, and as quickly."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from numalign.config.loader import load_settings
from numalign.config.settings import Service
from numalign.errors import Undecided
from numalign.families import merge as families_merge
from numalign.families.merge import Merged
from numalign.kube.pod_json import pod_from_json
from numalign.process.node import Node
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import admission_pb2_grpc as ad_grpc
from numalign.v1 import types_pb2 as pb

GIB = 1 << 30


def numa_node(number: int, nodes: int, cpus: int, memory: int) -> dict[str, Any]:
    """One NUMA node; its distances are those of packages of four nodes."""
    first = number * cpus
    return {
        "id": number,
        "memory_bytes": memory,
        "hugepages": [],
        "distances": [
            10 if number == other else 12 if number // 4 == other // 4 else 20
            for other in range(nodes)
        ],
        "cores": [
            {"id": first + i, "socket_id": number // 4, "threads": [first + i]} for i in range(cpus)
        ],
    }


def gb200(nodes: int, other_memory: int) -> list[dict[str, Any]]:
    """Two NUMA nodes with CPUs; the others have at most memory."""
    return [
        numa_node(n, nodes, 72 if n < 2 else 0, 480 * GIB if n < 2 else other_memory)
        for n in range(nodes)
    ]


def everywhere(nodes: int) -> list[dict[str, Any]]:
    """CPUs and memory on every NUMA node."""
    return [numa_node(n, nodes, 8, 32 * GIB) for n in range(nodes)]


def document(
    numa_nodes: list[dict[str, Any]], gpus: int, policy: str, options: dict[str, str]
) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "topologyManagerPolicy": policy,
        "topologyManagerPolicyOptions": options,
        "cpuManagerPolicy": "static",
        "memoryManagerPolicy": "Static",
        "reservedSystemCPUs": "0",
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
        "numalign": {
            "machine": {"numa_nodes": numa_nodes},
            "nodeAllocatableReservation": {"memory": "1Gi"},
            "devices": [
                {
                    "resource": "example.com/gpu",
                    "devices": [
                        {"id": f"gpu{i}", "numa_nodes": [i // 2], "healthy": True}
                        for i in range(gpus)
                    ],
                }
            ],
        },
    }


@asynccontextmanager
async def opened(
    directory: Path, numa_nodes: list[dict[str, Any]], gpus: int, policy: str, **options: str
) -> AsyncIterator[ad_grpc.AdmissionAsyncStub]:
    """A node in this process, its state and sockets in `directory`."""
    named = {name.replace("_", "-"): value for name, value in options.items()}
    config = document(numa_nodes, gpus, policy, named)
    config["numalign"] |= {
        "stateDirectory": str(directory / "state"),
        "runtimeDirectory": str(directory / "run"),
    }
    file = directory / "config.yaml"
    file.write_text(yaml.safe_dump(config))
    node = await Node.open(load_settings(file, {}, False))
    try:
        await node.serving()
        yield ad_grpc.AdmissionStub(node.channel(Service.ADMISSION))
    finally:
        await node.close()


def request(name: str, cpus: int, memory: str, gpus: int) -> ad.AdmitRequest:
    amounts = {"cpu": str(cpus), "memory": memory}
    if gpus:
        amounts["example.com/gpu"] = str(gpus)
    pod = pod_from_json(
        {
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {
                "containers": [{"name": "c", "resources": {"limits": amounts, "requests": amounts}}]
            },
        }
    )
    return ad.AdmitRequest(pod=pod, explain=pb.EXPLAIN_LEVEL_FULL)


async def admitted(
    stub: ad_grpc.AdmissionAsyncStub, asked: ad.AdmitRequest
) -> tuple[ad.AdmitResponse, float]:
    """The answer, and the seconds that this process worked for it."""
    start = time.process_time()
    answer = await stub.Admit(asked)
    return answer, time.process_time() - start


@pytest.mark.parametrize("policy", ["best-effort", "restricted", "single-numa-node"])
@pytest.mark.parametrize(
    "machine",
    [
        pytest.param(lambda: gb200(36, 0), id="nothing-elsewhere"),
        pytest.param(lambda: gb200(36, 16 * GIB), id="memory-elsewhere"),
        pytest.param(lambda: gb200(2, 0), id="two-nodes"),
    ],
)
async def test_uc_30(
    tmp_path: Path, machine: Callable[[], list[dict[str, Any]]], policy: str
) -> None:
    """NUMA nodes that carry nothing a pod can ask for change nothing, and cost nothing."""
    async with opened(tmp_path, machine(), 4, policy) as stub:
        answer, seconds = await admitted(stub, request("p", 8, "16Gi", 1))

    (allocation,) = answer.allocations
    assert answer.verdict == pb.VERDICT_ADMITTED
    assert allocation.affinity == pb.Hint(mask=1, preferred=True)
    assert allocation.cpus == "1-8"
    assert [list(block.numa_nodes) for block in allocation.memory] == [[0]]
    assert list(allocation.devices[0].ids) in (["gpu0"], ["gpu1"])
    assert list(answer.warnings) == []
    assert seconds < 2


@pytest.mark.parametrize("options", [{}, {"prefer_closest_numa_nodes": "true"}])
@pytest.mark.parametrize("nodes", [32, 64])
async def test_all_nodes_with_cpus(tmp_path: Path, nodes: int, options: dict[str, str]) -> None:
    """Requests over several NUMA nodes of many; the default limit of safe mode lets them in."""
    async with opened(tmp_path, everywhere(nodes), 16, "restricted", **options) as stub:
        first, _ = await admitted(stub, request("a", 16, "60Gi", 3))
        second, _ = await admitted(stub, request("b", 16, "40Gi", 0))
        third, _ = await admitted(stub, request("c", 8 * nodes, "1Gi", 0))

    # Node 0 has a CPU less, so that no pair with it has enough.
    assert first.verdict == pb.VERDICT_ADMITTED
    assert [a.affinity.mask for a in first.allocations] == [0b110]
    assert second.verdict == pb.VERDICT_ADMITTED
    assert [a.affinity.mask for a in second.allocations] == [0b11000 if not options else 0b110000]
    assert third.verdict == pb.VERDICT_REJECTED
    assert third.reason == "TopologyAffinityError"
    assert "cpu" in third.explanation.summary


async def test_what_is_not_proved_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pod is admitted where it was going to be, and the caller is told."""

    def unproved(*given: Any) -> Merged:
        return Merged(families_merge.merge_offers(*given).best, proved=False)

    monkeypatch.setattr("numalign.topology.merge.merge_offers", unproved)
    async with opened(tmp_path, everywhere(12), 0, "restricted") as stub:
        answer, _ = await admitted(stub, request("a", 4, "1Gi", 0))

    assert answer.verdict == pb.VERDICT_ADMITTED
    assert list(answer.warnings) == [
        (
            'for container "c" a set of NUMA nodes was chosen without proof that no other of the '
            "same size is better: the search was ended"
        )
    ]


async def test_what_is_not_decided_is_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither an admission nor a rejection, and nothing is kept."""

    def undecided(*_: Any) -> Merged:
        raise Undecided("topology merge not decided within 5 steps: 2 resources, 12 NUMA nodes")

    async with opened(tmp_path, everywhere(12), 0, "best-effort") as stub:
        with monkeypatch.context() as patched:
            patched.setattr("numalign.topology.merge.merge_offers", undecided)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stub.Admit(request("a", 4, "1Gi", 0))
        listed = await stub.ListAdmissions(ad.ListAdmissionsRequest())
        again, _ = await admitted(stub, request("a", 4, "1Gi", 0))

    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert refused.value.details() == (
        "topology merge not decided within 5 steps: 2 resources, 12 NUMA nodes"
    )
    assert not listed.admissions
    assert again.verdict == pb.VERDICT_ADMITTED
    assert again.allocations[0].cpus == "1-4"

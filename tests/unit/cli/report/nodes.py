"""Nodes to draw: small ones with everything on them, and large ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numalign.cli.snapshot.values import AdmittedPod, NodeSnapshot
from numalign.v1 import control_pb2 as ct
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb
from numalign.v1.node_resources_pb2 import NodeResources

GPU = "example.com/gpu"
NASTY = "<script>alert('x')</script>&\"'"


def machine(nodes: int = 2, cores: int = 4, threads: int = 2) -> dict[str, Any]:
    """A machine of so many nodes, one a socket; CPUs are numbered core by core."""
    return {
        "numa_nodes": [
            {
                "id": node,
                "memory_bytes": 16 << 30,
                "cores": [
                    {
                        "id": core,
                        "socket_id": node,
                        "threads": [
                            (node * cores + core) * threads + thread for thread in range(threads)
                        ],
                    }
                    for core in range(cores)
                ],
            }
            for node in range(nodes)
        ]
    }


def node(of: Mapping[str, Any] | None = None, pod: str = "web") -> NodeSnapshot:
    """A node with one pod on CPUs 2 and 3 and a GPU, and one refusal; its second GPU is ill."""
    found = machine() if of is None else of
    last = max(cpu for n in found["numa_nodes"] for core in n["cores"] for cpu in core["threads"])
    record = pb.AdmissionRecord(pod_uid="uid-1", namespace="default", name=pod)
    record.allocations.add(container="c", cpus="2-3")
    refusal = dc.DecisionRecord(
        number=4,
        times=2,
        pod_uid="uid-2",
        namespace="default",
        name="big",
        verdict=pb.VERDICT_REJECTED,
        reason="TopologyAffinityError",
        message="Resources cannot be allocated with Topology locality",
    )
    refusal.explanation.summary = "Rejected: uid-1 holds 2."
    obstacle = refusal.explanation.obstacles.add(container="c", resources=["cpu"], why="cpu")
    fact = obstacle.facts.add(provider="cpu", resource="cpu", requested=20)
    fact.nodes.add(numa_node=0, capacity=8, free=4).holders.add(pod_uid="uid-1", amount=2)
    resources = NodeResources(revision=3)
    for number in range(len(found["numa_nodes"])):
        part = resources.numa_nodes.add(numa_node=number)
        part.cpus.all = "0"
        part.largest_shape.cpus = 4 + number
        part.largest_shape.memory["memory"] = 1 << 30
    memory = hp.MemoryState(policy="Static")
    for number in range(len(found["numa_nodes"])):
        memory.nodes.add(numa_node=number).tables.add(
            resource="memory",
            total=16 << 30,
            system_reserved=1 << 30,
            reserved=4 << 30,
            free=11 << 30,
        )
    device = hp.DeviceState()
    gpus = device.resources.add(resource=GPU)
    gpus.devices.add(id="gpu-0", healthy=True, has_topology=True, numa_nodes=[0])
    gpus.devices.add(id="gpu-1", healthy=False, has_topology=True, numa_nodes=[1])
    gpus.devices.add(id="bridge", healthy=True)
    held = device.assignments.add(pod_uid="uid-1", container="c")
    held.devices.add(resource=GPU, ids=["gpu-0"])
    cpu = hp.CpuState(policy="static", default_cpus=f"0-1,4-{last}", reserved_cpus="0-1")
    cpu.assignments.add(pod_uid="uid-1", container="c", cpus="2-3")
    return NodeSnapshot(
        taken="2026-01-31T08:00:00Z",
        node="n1",
        configuration={"topologyManagerPolicy": "restricted", "numalign": {"machine": found}},
        revision=3,
        admissions=(AdmittedPod(record, b""),),
        shared_cpus="0-1",
        resources=resources,
        services={"cpu": ct.GetStatusResponse(version="1.2.3", reports=["something was re-based"])},
        decisions=(refusal,),
        cpu=cpu,
        memory=memory,
        device=device,
    )

"""A machine of two NUMA nodes, and what the services would say of it."""

from __future__ import annotations

from numalign.model.machine import Core, HugePages, Machine, NumaNode
from numalign.v1 import node_resources_pb2 as nr

GIB, MIB = 1 << 30, 1 << 20
GPU = "example.com/gpu"


def machine(*, pages: int = 64, distances: bool = True) -> Machine:
    """Two nodes of four CPUs and 16 GiB."""
    return Machine(
        numa_nodes=tuple(
            NumaNode(
                id=node,
                memory_bytes=16 * GIB,
                hugepages=(HugePages(page_size_kib=2048, count=pages),) if pages else (),
                distances=((10, 21) if node == 0 else (21, 10)) if distances else None,
                cores=tuple(Core(id=c, socket_id=node, threads=(node * 4 + c,)) for c in range(4)),
            )
            for node in (0, 1)
        )
    )


def resources(*, policy: str = "static", memory: bool = True) -> nr.NodeResources:
    """CPU 0 is reserved, node 0 has one exclusive CPU and 4 GiB given out, and one GPU free."""
    shapes = (
        nr.SingleNodeShape(
            cpus=2, memory={"memory": 10 * GIB, "hugepages-2Mi": 128 * MIB}, devices={GPU: 1}
        ),
        nr.SingleNodeShape(cpus=4, memory={"memory": 0, "hugepages-2Mi": 0}),
    )
    tables = [
        nr.NumaNodeMemoryAmount(resource="memory", allocatable=14 * GIB),
        nr.NumaNodeMemoryAmount(resource="hugepages-2Mi", allocatable=128 * MIB),
    ]
    gpus = [nr.NodeDevices(resource=GPU, capacity=2, allocatable=2)]
    return nr.NodeResources(
        revision=7,
        cpus=nr.NodeCpus(policy=policy, all="0-7", reserved="0", exclusive="1"),
        numa_nodes=[
            nr.NumaNodeResources(
                numa_node=node,
                cpus=nr.NumaNodeCpus(all=f"{4 * node}-{4 * node + 3}"),
                memory=tables if memory else (),
                devices=() if node else gpus,
                largest_shape=shapes[node],
            )
            for node in (0, 1)
        ],
    )

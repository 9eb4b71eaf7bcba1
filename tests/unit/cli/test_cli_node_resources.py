"""`numalign status --resources`."""

from __future__ import annotations

import json

from tests.unit.cli.conftest import Run, Scripted
from tests.unit.cli.rendering import words_of

from numalign.cli.tables.node_resources import resources_tables
from numalign.v1 import admission_pb2 as ad
from numalign.v1 import node_resources_pb2 as nr

GIB = 1 << 30

PICTURE = nr.NodeResources(
    revision=7,
    cpus=nr.NodeCpus(shared_pool="0,3-7", shared_requested_millicores=1500, free=3),
    numa_nodes=[
        nr.NumaNodeResources(
            numa_node=0,
            cpus=nr.NumaNodeCpus(all="0-3", reserved="0", exclusive="1-2", free="3"),
            memory=[
                nr.NumaNodeMemoryAmount(
                    resource="memory",
                    allocatable=15 * GIB,
                    reserved=6 * GIB,
                    free=9 * GIB,
                    group=[0, 1],
                )
            ],
            devices=[
                nr.NodeDevices(resource="example.com/gpu", capacity=3, allocatable=2, free=["g1"])
            ],
            largest_shape=nr.SingleNodeShape(
                cpus=1, memory={"memory": 0}, devices={"example.com/gpu": 1}
            ),
        ),
        nr.NumaNodeResources(numa_node=1),
    ],
)


def test_a_row_for_each_resource_of_each_node() -> None:
    assert words_of(resources_tables(PICTURE)) == [
        "node resource all reserved held free largest",
        "{0} cpu 0-3 0 1-2 3 1",
        "memory 15Gi - 6Gi 9Gi in group {0,1} 0",
        "example.com/gpu 3 - 1 g1 1",
        "shared CPUs 0,3-7 requested of them 1.5 free for exclusive use 3 revision 7",
    ]


def test_the_command_asks_admission(run: Run, scripted: Scripted) -> None:
    scripted("admission", GetNodeResources=ad.GetNodeResourcesResponse(resources=PICTURE))

    result = run("status", "--resources", "-o", "json")

    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert told["cpus"]["sharedPool"] == "0,3-7"
    assert told["numaNodes"][0]["largestShape"]["cpus"] == 1

"""The map of the machine in the terminal: nodes, cores, who owns what."""

from __future__ import annotations

from tests.unit.cli.rendering import text_of

from numalign.cli.tables.allocation import devices_cell
from numalign.cli.tables.machine_map import machine_parts
from numalign.cli.tables.ownership import Books, ownership_of
from numalign.model.machine import Core, HugePages, Machine, NumaNode
from numalign.v1 import claims_pb2 as cl
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb

GIB = 1 << 30

MACHINE = Machine(
    numa_nodes=(
        NumaNode(
            id=0,
            memory_bytes=4 * GIB,
            hugepages=(
                HugePages(page_size_kib=2048, count=512),
                HugePages(page_size_kib=1 << 20, count=0),
            ),
            distances=(10, 21),
            cores=(
                Core(id=0, socket_id=0, threads=(0, 4), uncore_cache_id=0),
                Core(id=1, socket_id=0, threads=(1, 5), uncore_cache_id=1),
            ),
        ),
        NumaNode(id=2, memory_bytes=GIB, distances=(21, 10)),
    )
)
BOOKS = Books(
    pods={"u1": "shop/web"},
    cpu=hp.CpuState(
        default_cpus="0,4",
        reserved_cpus="0",
        assignments=[hp.CpuAssignment(pod_uid="u1", container="c", cpus="1")],
        pods=[hp.PodCpus(pod_uid="u2", cpus="1,5")],
    ),
    memory=hp.MemoryState(
        nodes=[
            hp.NumaNodeMemory(
                numa_node=0,
                tables=[
                    hp.MemoryTable(resource="hugepages-1Gi"),
                    hp.MemoryTable(
                        resource="memory",
                        total=4 * GIB,
                        system_reserved=GIB,
                        reserved=GIB,
                        free=2 * GIB,
                    ),
                ],
            )
        ]
    ),
    device=hp.DeviceState(
        resources=[
            hp.DeviceResource(
                resource="example.com/gpu",
                devices=[
                    hp.Device(id="g0", healthy=True, has_topology=True, numa_nodes=[0]),
                    hp.Device(id="g1", healthy=False, has_topology=True, numa_nodes=[0, 2]),
                    hp.Device(id="g2", healthy=True),
                ],
            )
        ],
        assignments=[
            hp.DeviceAssignment(
                pod_uid="u1",
                container="c",
                devices=[pb.DeviceAllocation(resource="example.com/gpu", ids=["g0"])],
            )
        ],
    ),
)


def test_a_map_with_owners() -> None:
    assert text_of(machine_parts(MACHINE, BOOKS)) == (
        "2 NUMA nodes, 1 socket, 2 cores, 4 CPUs, 5Gi memory\n"
        "\n"
        "NUMA node 0\n"
        "  socket 0, cache 0 [0x 4.]\n"
        "  socket 0, cache 1 [1B 5A]\n"
        "  memory  4Gi  [xxxxxx######............]  1Gi given out, 1Gi reserved, 2Gi free\n"
        "  example.com/gpu: g0B g1- (unhealthy)\n"
        "\n"
        "NUMA node 2\n"
        "  no CPUs\n"
        "  memory  1Gi\n"
        "  example.com/gpu: g1- (unhealthy)\n"
        "\n"
        "devices without a NUMA node\n"
        "  example.com/gpu: g2-\n"
        "\n"
        "distances\n"
        " from/to  0   2\n"
        " 0        10  21\n"
        " 2        21  10\n"
        "\n"
        "  .  shared by containers without CPUs of their own\n"
        "  x  reserved for the system\n"
        "  -  a device that nobody holds\n"
        "  A  u2\n"
        "  B  shop/web/c"
    )


def test_a_map_of_the_machine_alone() -> None:
    text = text_of(machine_parts(MACHINE, Books()))

    assert "[0 4]" in text
    assert "memory         3Gi" in text
    assert "hugepages-2Mi 1Gi 512 pages" in " ".join(text.split())
    assert "hugepages-1Gi" not in text
    assert "shared by" not in text


def test_a_cpu_that_nobody_knows() -> None:
    owners = ownership_of(Books(cpu=hp.CpuState(default_cpus="0")))

    assert owners.mark_of_cpu(0)[0] == "."
    assert owners.mark_of_cpu(9)[0] == "?"


def test_marks_go_on_after_the_alphabet() -> None:
    books = Books(
        cpu=hp.CpuState(
            assignments=[
                hp.CpuAssignment(pod_uid=f"u{i}", container="c", cpus=str(i)) for i in range(28)
            ]
        )
    )

    assert list(ownership_of(books).names)[25:] == ["Z", "AA", "AB"]


def test_devices_of_plugins_and_of_claims_stand_in_one_cell() -> None:
    held = pb.ContainerAllocation(
        devices=[pb.DeviceAllocation(resource="example.com/gpu", ids=["g0"])],
        claims=[
            cl.ClaimAllocation(
                name="c1", devices=[cl.ClaimedDevice(driver="d", pool="p", device="x")]
            ),
            cl.ClaimAllocation(name="c2"),
        ],
    )

    assert devices_cell(held) == "example.com/gpu: g0\nclaim c1: d/p/x\nclaim c2: no devices"
    assert devices_cell(pb.ContainerAllocation()) == "-"

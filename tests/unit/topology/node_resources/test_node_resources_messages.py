from __future__ import annotations

import pytest

from numalign.topology.node_resources.messages import node_cpus, node_resources
from numalign.v1 import hint_provider_pb2 as hp

GIB = 1 << 30


def cpu_state(policy: str = "static", default: str = "0,3-7") -> hp.CpuState:
    return hp.CpuState(
        policy=policy,
        all_cpus="0-7",
        reserved_cpus="0",
        default_cpus=default,
        nodes=[
            hp.CpuNode(numa_node=0, cpus="0-3", free="3", largest=1),
            hp.CpuNode(numa_node=1, cpus="4-7", free="4-7", largest=4),
        ],
    )


@pytest.mark.parametrize(
    ("default", "asked", "shared", "exclusive", "free"),
    [
        pytest.param("0,3-7", 1500, "3-7", "1-2", 3, id="rounded up"),
        pytest.param("3-7", 1000, "3-7", "1-2", 4, id="reserved kept strictly"),
        pytest.param("0-7", 0, "1-7", "", 7, id="nothing asked for"),
        pytest.param("0,7", 2500, "7", "1-6", 0, id="more asked for than there is"),
    ],
)
def test_node_cpus(default: str, asked: int, shared: str, exclusive: str, free: int) -> None:
    cpus = node_cpus(cpu_state(default=default), asked)

    assert (cpus.reserved, cpus.shared, cpus.exclusive) == ("0", shared, exclusive)
    assert (cpus.shared_pool, cpus.shared_requested_millicores) == (default, asked)
    assert cpus.free == free


def test_without_a_policy_all_cpus_are_shared_and_none_free() -> None:
    state = hp.CpuState(policy="none", all_cpus="0-7")

    cpus = node_cpus(state, 500)

    assert (cpus.shared, cpus.shared_pool, cpus.exclusive, cpus.free) == ("0-7", "0-7", "", 0)


def memory_node(
    node: int, assignments: int, cells: tuple[int, ...], free: int
) -> hp.NumaNodeMemory:
    return hp.NumaNodeMemory(
        numa_node=node,
        number_of_assignments=assignments,
        cells=cells,
        tables=[hp.MemoryTable(resource="memory", allocatable=15 * GIB, free=free)],
    )


def test_memory_of_a_group_is_not_for_one_of_its_nodes() -> None:
    memory = hp.MemoryState(
        nodes=[
            memory_node(0, 1, (0, 1), 3 * GIB),
            memory_node(1, 1, (0, 1), 4 * GIB),
            memory_node(2, 1, (2,), 5 * GIB),
            memory_node(3, 0, (3,), 6 * GIB),
        ]
    )

    nodes = node_resources(1, hp.CpuState(), memory, hp.DeviceState(), 0).numa_nodes

    assert [list(n.memory[0].group) for n in nodes] == [[0, 1], [0, 1], [], []]
    assert [n.largest_shape.memory["memory"] // GIB for n in nodes] == [0, 0, 5, 6]
    assert [n.memory[0].free // GIB for n in nodes] == [3, 4, 5, 6]


def test_devices_count_on_each_of_their_nodes() -> None:
    device = hp.DeviceState(
        resources=[
            hp.DeviceResource(
                resource="r",
                connected=True,
                allocated=["a"],
                devices=[
                    hp.Device(id="a", healthy=True, has_topology=True, numa_nodes=[0]),
                    hp.Device(id="b", healthy=True, has_topology=True, numa_nodes=[0, 1]),
                    hp.Device(id="c", healthy=False, has_topology=True, numa_nodes=[1]),
                    hp.Device(id="d", healthy=True),
                    hp.Device(id="e", healthy=True, has_topology=True, numa_nodes=[7]),
                ],
            )
        ]
    )

    picture = node_resources(1, cpu_state(), hp.MemoryState(), device, 0)

    (everywhere,) = picture.devices
    assert (everywhere.capacity, everywhere.allocatable) == (5, 4)
    assert list(everywhere.free) == ["b", "d", "e"]
    assert [list(n.devices[0].free) for n in picture.numa_nodes] == [["b"], ["b"]]
    assert [n.devices[0].capacity for n in picture.numa_nodes] == [2, 2]
    assert [n.largest_shape.devices["r"] for n in picture.numa_nodes] == [1, 1]
    assert [n.largest_shape.cpus for n in picture.numa_nodes] == [1, 4]


def test_devices_of_a_plugin_that_is_gone_are_not_free() -> None:
    device = hp.DeviceState(
        resources=[
            hp.DeviceResource(
                resource="r",
                connected=False,
                devices=[hp.Device(id="a", healthy=True, numa_nodes=[0])],
            )
        ]
    )

    (everywhere,) = node_resources(1, cpu_state(), hp.MemoryState(), device, 0).devices

    assert (everywhere.capacity, everywhere.allocatable, list(everywhere.free)) == (1, 0, [])

"""How the kubelet counts CPUs, cores, sockets, nodes and caches."""

from __future__ import annotations

import pytest
from tests.unit.cpu.cpu_machines import T16, core, machine, single

from numalign.cpu.topology import TopologyError, discover
from numalign.model.machine import Core, Machine, NumaNode


def test_counts_and_averages() -> None:
    found = discover(T16)

    assert (found.num_cpus, found.num_cores, found.num_sockets) == (16, 8, 2)
    assert (found.cpus_per_core, found.cpus_per_socket, found.cpus_per_uncore) == (2, 8, 8)
    assert str(found.all_cpus) == "0-15"
    assert found.nodes == {0: 0x0F0F, 1: 0xF0F0}


def test_cores_are_named_by_their_smallest_thread() -> None:
    where = Machine(numa_nodes=(NumaNode(id=0, cores=(Core(id=9, socket_id=0, threads=(7, 3)),)),))

    assert list(discover(where).cores) == [3]


def test_socket_stands_in_for_a_missing_cache() -> None:
    where = machine({0: [core(0, socket=5), core(1, socket=5, uncore=2)]})

    assert discover(where).uncores == {2: 0b10, 5: 0b01}


def test_the_last_node_that_lists_a_thread_has_it() -> None:
    found = discover(machine({0: [core(0), core(1)], 1: [core(1)]}))

    assert found.nodes == {0: 0b01, 1: 0b10}
    assert found.num_cores == 3
    assert found.cpus_per_core == 0
    assert found.group_size == 1


def test_nodes_without_cpus_do_not_count() -> None:
    assert list(discover(machine({0: [], 3: single(range(2))})).nodes) == [3]


def test_reported_counts_win() -> None:
    found = discover(machine({0: single(range(4))}, num_cpus=8, num_sockets=4))

    assert (found.num_cpus, found.cpus_per_socket, found.cpus_per_core) == (8, 2, 2)
    assert len(found.all_cpus) == 4


@pytest.mark.parametrize(
    ("where", "message"),
    [
        pytest.param(machine({0: []}), "could not detect number of cpus", id="none"),
        pytest.param(
            machine({0: [core(0), Core(id=1, socket_id=0, threads=())]}),
            "no cpus provided",
            id="core without threads",
        ),
        pytest.param(machine({0: [core(0, 0)]}), "cpus provided are not unique", id="repeated"),
    ],
)
def test_refusals(where: Machine, message: str) -> None:
    with pytest.raises(TopologyError) as refused:
        discover(where)

    assert str(refused.value) == message

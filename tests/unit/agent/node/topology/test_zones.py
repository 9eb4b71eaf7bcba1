"""The zones: what each NUMA node has, and the most that one container gets of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.agent.node.topology.nodes import GPU, machine, resources

from numalign.model.machine import Machine, NumaNode
from numalign.v1 import node_resources_pb2 as nr
from numalign_agent.node.topology.zones import zones

Amounts = dict[str, tuple[str, str, str]]


def amounts(zone: dict[str, Any]) -> Amounts:
    """Capacity, allocatable and available by resource."""
    return {
        each["name"]: (each["capacity"], each["allocatable"], each["available"])
        for each in zone["resources"]
    }


def test_what_is_managed_by_numa_node() -> None:
    first, second = zones(machine(), resources())

    assert (first["name"], first["type"]) == ("node-0", "Node")
    assert amounts(first) == {
        "cpu": ("4", "3", "2"),
        "memory": ("16256Mi", "14Gi", "10Gi"),
        "hugepages-2Mi": ("128Mi", "128Mi", "128Mi"),
        GPU: ("2", "2", "1"),
    }
    # Of a NUMA node that is in a group no container gets memory alone.
    assert amounts(second) == {
        "cpu": ("4", "4", "4"),
        "memory": ("16256Mi", "14Gi", "0"),
        "hugepages-2Mi": ("128Mi", "128Mi", "0"),
    }


def test_what_is_not_managed_by_numa_node_is_offered_whole_in_each() -> None:
    first, second = zones(machine(), resources(policy="none", memory=False))

    assert amounts(first) == {
        "cpu": ("4", "7", "7"),
        "memory": ("16256Mi", "32512Mi", "32512Mi"),
        "hugepages-2Mi": ("128Mi", "256Mi", "256Mi"),
        GPU: ("2", "2", "1"),
    }
    assert amounts(second)["cpu"] == ("4", "7", "7")


def test_what_other_nodes_cost() -> None:
    costs = [zone["costs"] for zone in zones(machine(), resources())]

    assert costs == [
        [{"name": "node-0", "value": 10}, {"name": "node-1", "value": 21}],
        [{"name": "node-0", "value": 21}, {"name": "node-1", "value": 10}],
    ]


def test_costs_of_a_machine_with_a_gap_go_by_the_nodes_that_there_are() -> None:
    nodes = machine().numa_nodes
    gap = Machine(numa_nodes=(nodes[0], replace(nodes[1], id=3)))

    assert zones(gap, resources())[1]["costs"] == [
        {"name": "node-0", "value": 21},
        {"name": "node-3", "value": 10},
    ]


def test_where_no_distances_are_known_none_are_told() -> None:
    assert all("costs" not in zone for zone in zones(machine(distances=False), resources()))


def test_a_node_without_cpus_and_without_a_word_of_the_services() -> None:
    lone = Machine(numa_nodes=(*machine(pages=0).numa_nodes, NumaNode(id=2, memory_bytes=1 << 30)))
    picture = resources(memory=False)
    third = zones(lone, picture)[2]

    assert amounts(third) == {"memory": ("1Gi", "33Gi", "33Gi")}


def test_no_services_at_all_offer_nothing_of_what_is_managed() -> None:
    picture = nr.NodeResources(cpus=nr.NodeCpus(policy="static", all="0-7"))

    assert amounts(zones(machine(pages=0), picture)[0])["cpu"] == ("4", "4", "0")

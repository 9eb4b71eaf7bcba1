"""What plugins of a scenario send, and what of it counts on the scenario's machine."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.device.listing import listed_as_sent, listed_safely
from numalign.replay.device_lists import counted_entry, misplaced, with_list

GPU, NIC = "example.com/gpu", "example.com/nic"


def device(id_: str, nodes: list[int] | None, healthy: bool = True) -> Any:
    return {"id": id_, "numa_nodes": nodes, "healthy": healthy}


def entry(resource: str, *devices: Any) -> Any:
    return {"resource": resource, "preferred_allocation": "none", "devices": list(devices)}


def node(*entries: Any) -> Any:
    return {"machine": {"numa_nodes": [{"id": 0}, {"id": 1}]}, "devices": list(entries)}


def test_a_safe_node_counts_known_nodes_alone() -> None:
    sent = entry(GPU, device("a", [5]), device("b", [1, 5]), device("c", []), device("d", None))

    assert counted_entry(sent, listed_as_sent, (0, 1)) == sent
    assert counted_entry(sent, listed_safely, (0, 1)) == entry(
        GPU, device("a", None), device("b", [1]), device("c", []), device("d", None)
    )


def test_health_is_kept() -> None:
    sent = entry(GPU, device("a", [0], healthy=False), device("b", [0]))

    assert counted_entry(sent, listed_safely, (0, 1)) == sent


@pytest.mark.parametrize(
    ("devices", "found"),
    [
        pytest.param([device("a", [5]), device("b", None)], {GPU}, id="all-elsewhere"),
        pytest.param([device("a", [5]), device("b", [1])], set(), id="one-is-there"),
        pytest.param([device("a", None), device("b", [])], set(), id="no-topology"),
    ],
)
def test_misplaced_resources(devices: list[Any], found: set[str]) -> None:
    assert misplaced(node(entry(GPU, *devices), entry(NIC, device("n", [0])))) == found


def test_a_list_replaces_that_of_its_resource() -> None:
    before = node(entry(GPU, device("a", [0])), entry(NIC, device("n", [0])))
    step = {"op": "device_list", "resource": GPU, "devices": [device("z", [1])]}

    assert with_list(before, step) == node(
        entry(GPU, device("z", [1])), entry(NIC, device("n", [0]))
    )

from __future__ import annotations

from collections.abc import Mapping

import pytest

from numalign.admission.pod_resources.from_allocations import (
    held,
    held_devices,
    with_cumulated_names,
)
from numalign.admission.pod_resources.values import ClaimedDevice, HeldMemory
from numalign.model.cpu_set import CpuSet
from numalign.model.ids import NumaId
from numalign.provider.values import MemoryBlock


@pytest.mark.parametrize(
    ("by_node", "expected"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({0: ["b", "a"]}, [("a", (0,)), ("b", (0,))], id="never grouped"),
        pytest.param({0: ["a"], 1: ["a"]}, [("a", (0,)), ("a", (1,))], id="an entry for each node"),
        pytest.param({-1: ["a"]}, [("a", None)], id="without topology"),
        pytest.param({-1: ["a"], 2: ["a"]}, [("a", (2,))], id="real nodes over none"),
    ],
)
def test_held_devices(
    by_node: Mapping[int, list[str]], expected: list[tuple[str, tuple[int, ...] | None]]
) -> None:
    entries = held_devices("r", by_node)

    assert [(*e.ids, e.numa_nodes) for e in entries] == expected
    assert all(e.resource == "r" for e in entries)


def test_memory_has_one_entry_for_each_block_with_all_nodes() -> None:
    block = MemoryBlock(numa_nodes=(NumaId(0), NumaId(1)), resource="memory", size=5)

    told = held(CpuSet.parse("3,1"), (block, block), ())

    assert told.memory == (HeldMemory(resource="memory", size=5, numa_nodes=(0, 1)),) * 2
    assert told.cpus == (1, 3)


def test_cdi_names_add_up_within_a_driver() -> None:
    """PR-T1: d1 has A, d2 has B; told are [A] and [A, B]. Another driver begins anew."""
    devices = [
        ClaimedDevice(driver="x", pool="p", device="d1", cdi_names=("A",)),
        ClaimedDevice(driver="y", pool="p", device="e1", cdi_names=("C",)),
        ClaimedDevice(driver="x", pool="p", device="d2", cdi_names=("B",)),
    ]

    assert with_cumulated_names(devices) == (("A",), ("C",), ("A", "B"))

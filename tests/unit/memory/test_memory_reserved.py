"""Construction: reserved memory against the machine and against Node Allocatable."""

from __future__ import annotations

import pytest
from tests.unit.memory.memory_builders import GATES, GI, machine, quantities

from numalign.errors import StartError
from numalign.memory.engine import SAFE, build_engine
from numalign.memory.reserved import reserved_tables
from numalign.model.ids import NumaId
from numalign.model.settings import MemorySettings, ReservedMemory


def memory_settings(
    entries: list[tuple[int, dict[str, str]]], allocatable: dict[str, str], policy: str = "Static"
) -> MemorySettings:
    return MemorySettings(
        policy=policy,
        reserved_memory=tuple(
            ReservedMemory(numa_node=NumaId(node), limits=quantities(limits))
            for node, limits in entries
        ),
        node_allocatable_reservation=quantities(allocatable),
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param(
            memory_settings([(7, {"memory": "1Gi"})], {"memory": "1Gi"}),
            "the reserved memory configuration references a NUMA node 7 that does not exist on "
            "this machine",
            id="unknown-node",
        ),
        pytest.param(
            memory_settings([(0, {"memory": "1Gi"})], {"memory": "1124Mi"}),
            'the total amount "1Gi" of type "memory" is not equal to the value "1124Mi" '
            "determined by Node Allocatable feature",
            id="hard-eviction-counts-T12",
        ),
        pytest.param(
            memory_settings([(0, {"memory": "1Gi", "hugepages-2Mi": "2Mi"})], {"memory": "1Gi"}),
            'the total amount "2Mi" of type "hugepages-2Mi" is not equal to the value "0" '
            "determined by Node Allocatable feature",
            id="huge-pages-cannot-be-reserved-T11",
        ),
        pytest.param(
            memory_settings([(0, {"memory": "1Gi"})], {"memory": "1Gi", "hugepages-1Gi": "1Gi"}),
            'the total amount "0" of type "hugepages-1Gi" is not equal to the value "1Gi" '
            "determined by Node Allocatable feature",
            id="huge-pages-missing",
        ),
        pytest.param(
            memory_settings([(0, {"memory": "1500m"})], {"memory": "1500m"}),
            "could not covert a variable of type Quantity to int64",
            id="no-integer",
        ),
        pytest.param(
            memory_settings([], {}),
            "[memorymanager] you should specify the system reserved memory",
            id="nothing-reserved",
        ),
        pytest.param(
            memory_settings([], {}, "BestEffort"),
            'policy "BestEffort" is not available for platform "linux"',
            id="windows-policy",
        ),
        pytest.param(memory_settings([], {}, "static"), 'unknown policy: "static"', id="case"),
    ],
)
def test_construction_refuses(settings: MemorySettings, message: str) -> None:
    with pytest.raises(StartError) as caught:
        build_engine(settings, machine(2), GATES, SAFE)

    assert (caught.value.stage, str(caught.value)) == ("memory_manager", message)


def test_the_none_policy_looks_at_nothing() -> None:
    engine = build_engine(
        memory_settings([(7, {"memory": "1Gi"})], {"cpu": "1"}, "None"), machine(1), GATES, SAFE
    )

    assert (engine.policy_name, engine.resources(), engine.allocatable) == ("None", (), ())


def test_other_resources_of_node_allocatable_do_not_count() -> None:
    tables = reserved_tables(
        memory_settings([(1, {"memory": "1Gi"})], {"memory": "1Gi", "cpu": "2"}), machine(2)
    )

    assert tables == {0: {}, 1: {"memory": GI}}


def test_a_later_entry_replaces_but_the_sum_adds() -> None:
    entries = [(0, {"memory": "1Gi"}), (0, {"memory": "2Gi"})]
    tables = reserved_tables(memory_settings(entries, {"memory": "3Gi"}), machine(1))

    assert tables == {0: {"memory": 2 * GI}}

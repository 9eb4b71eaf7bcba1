"""Memory manager state files beyond the recordings: reference checksums and null values."""

from __future__ import annotations

import json

import pytest

from numalign.kubelet_files.errors import CorruptCheckpoint, UnusableCheckpoint
from numalign.kubelet_files.fnv import fnv1a_32
from numalign.kubelet_files.memory_checkpoint import (
    MemoryCheckpoint,
    NodeMemory,
    memory_hash_input,
    read_memory_checkpoint,
    write_memory_checkpoint,
)
from numalign.kubelet_files.memory_layout import MemoryTable
from numalign.model.ids import NumaId, PodUid
from numalign.provider.values import MemoryBlock

BLOCK = MemoryBlock(numa_nodes=(NumaId(0),), resource="memory", size=4)
BOOKED = MemoryCheckpoint(
    policy_name="Static",
    machine_state={
        NumaId(0): NodeMemory(
            number_of_assignments=1,
            memory_map={
                "memory": MemoryTable(
                    total=10, system_reserved=1, allocatable=9, reserved=4, free=5
                )
            },
            cells=(NumaId(0),),
        )
    },
    assignments={PodUid("u"): {"c": (BLOCK,)}},
    pod_assignments={PodUid("u"): (BLOCK,)},
)


@pytest.mark.parametrize(
    ("value", "gate", "checksum"),
    [
        pytest.param(MemoryCheckpoint(policy_name="None"), False, 4236770233, id="none-v1"),
        pytest.param(BOOKED, False, 1738263099, id="booked-v1"),
        pytest.param(BOOKED, True, 1252998356, id="booked-v2"),
    ],
)
def test_reference_checksums(value: MemoryCheckpoint, gate: bool, checksum: int) -> None:
    text = write_memory_checkpoint(value, gate)

    assert json.loads(text)["checksum"] == checksum
    assert fnv1a_32(memory_hash_input(value, gate)) == checksum


def test_empty_file_text() -> None:
    assert write_memory_checkpoint(MemoryCheckpoint(policy_name="None"), False) == (
        '{"policyName":"None","machineState":{},"checksum":4236770233}'
    )


def test_what_is_written_reads_back() -> None:
    read = read_memory_checkpoint(write_memory_checkpoint(BOOKED, True), "Static", True)

    assert read.machine_state == BOOKED.machine_state
    assert read.assignments == BOOKED.assignments
    assert read.pod_assignments == BOOKED.pod_assignments
    assert read.hash_input == memory_hash_input(BOOKED, True)


def test_file_with_pod_entries_loads_without_the_gate_only_by_a_zero_checksum() -> None:
    text = write_memory_checkpoint(BOOKED, True)
    with pytest.raises(CorruptCheckpoint):
        read_memory_checkpoint(text, "Static", False)

    unchecked = text.replace("1252998356", "0")
    for gate in (False, True):
        assert read_memory_checkpoint(unchecked, "Static", gate).pod_assignments == {}


def test_older_type_name_is_accepted_with_the_gate_off() -> None:
    older = memory_hash_input(MemoryCheckpoint(policy_name="None"), False).replace(
        "MemoryManagerCheckpoint", "MemoryManagerCheckpointV1", 1
    )
    text = f'{{"policyName":"None","machineState":{{}},"checksum":{fnv1a_32(older)}}}'

    assert read_memory_checkpoint(text, "None", False).hash_input == older
    with pytest.raises(CorruptCheckpoint):
        read_memory_checkpoint(text, "None", True)


def test_null_members_print_as_nil() -> None:
    printed = (
        "(*state.MemoryManagerCheckpoint){PolicyName:(string)None "
        "MachineState:(state.NUMANodeMap)<nil> "
        "Entries:(state.ContainerMemoryAssignments)map[u:map[c:<nil>]] "
        "Checksum:(checksum.Checksum)0}"
    )
    text = (
        '{"policyName":"None","machineState":null,"entries":{"u":{"c":null}},'
        f'"checksum":{fnv1a_32(printed)}}}'
    )

    read = read_memory_checkpoint(text, "None", False)

    assert read.hash_input == printed
    assert read.assignments == {"u": {"c": ()}}


@pytest.mark.parametrize(
    ("machine_state", "message"),
    [
        pytest.param('{"0":null}', "machineState of NUMA node 0 is null", id="node"),
        pytest.param(
            '{"0":{"memoryMap":{"memory":null}}}',
            "memoryMap of NUMA node 0 has no table of memory",
            id="table",
        ),
    ],
)
def test_null_where_the_kubelet_would_crash_is_refused(machine_state: str, message: str) -> None:
    with pytest.raises(UnusableCheckpoint, match=f"^{message}$"):
        read_memory_checkpoint(f'{{"machineState":{machine_state}}}', "", False)


def test_other_policy_is_refused() -> None:
    text = write_memory_checkpoint(MemoryCheckpoint(policy_name="None"), False)

    with pytest.raises(UnusableCheckpoint) as refused:
        read_memory_checkpoint(text, "Static", False)

    assert str(refused.value) == (
        '[memorymanager] configured policy "Static" differs from state checkpoint policy "None"'
    )

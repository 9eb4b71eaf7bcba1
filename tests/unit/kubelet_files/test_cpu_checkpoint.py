"""CPU manager state files beyond the recordings: reference checksums and version fallbacks."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.kubelet_files.cpu_checkpoint import (
    CpuCheckpoint,
    cpu_hash_input,
    read_cpu_checkpoint,
    write_cpu_checkpoint,
)
from numalign.kubelet_files.errors import (
    CPU_OWNER,
    CorruptCheckpoint,
    UndecodableCheckpoint,
    UnusableCheckpoint,
)
from numalign.kubelet_files.fnv import fnv1a_32
from numalign.model.cpu_set import CpuSet
from numalign.model.ids import PodUid

PODS = {
    PodUid("pod-a"): {"x": CpuSet.parse("6-7,10")},
    PodUid("pod-b"): {"c1": CpuSet.parse("4"), "c2": CpuSet.parse("5")},
}


def checkpoint(
    policy: str = "static",
    cpus: str = "",
    assignments: Mapping[PodUid, Mapping[str, CpuSet]] | None = None,
    pod_assignments: Mapping[PodUid, CpuSet] | None = None,
) -> CpuCheckpoint:
    return CpuCheckpoint(
        policy_name=policy,
        default_cpus=CpuSet.parse(cpus),
        assignments=assignments or {},
        pod_assignments=pod_assignments or {},
    )


@pytest.mark.parametrize(
    ("value", "gate", "checksum"),
    [
        pytest.param(checkpoint("none"), False, 1353318690, id="none-v2"),
        pytest.param(checkpoint(), False, 3083571066, id="static-empty-v2"),
        pytest.param(checkpoint(cpus="0-3,8"), False, 2391417808, id="static-cpus-v2"),
        pytest.param(
            checkpoint(cpus="0-3,8", assignments=PODS), False, 1259402330, id="static-pods-v2"
        ),
        pytest.param(checkpoint(), True, 62170464, id="static-empty-v3"),
        pytest.param(checkpoint(cpus="0-3,8"), True, 3845888742, id="static-cpus-v3"),
        pytest.param(
            checkpoint(
                cpus="0-3,8",
                assignments=PODS,
                pod_assignments={PodUid("pod-b"): CpuSet.parse("4-5")},
            ),
            True,
            1704050699,
            id="static-pods-v3",
        ),
    ],
)
def test_reference_checksums(value: CpuCheckpoint, gate: bool, checksum: int) -> None:
    text = write_cpu_checkpoint(value, gate)

    assert json.loads(text)["checksum"] == checksum
    assert fnv1a_32(cpu_hash_input(value, gate)) == checksum


@given(
    cpus=st.sets(st.integers(0, 300)),
    pods=st.dictionaries(
        st.text(max_size=4),
        st.dictionaries(st.text(max_size=4), st.sets(st.integers(0, 70)), min_size=1, max_size=3),
        max_size=3,
    ),
    whole=st.dictionaries(st.text(max_size=4), st.sets(st.integers(0, 70)), max_size=3),
)
def test_what_is_written_reads_back(
    cpus: set[int], pods: dict[str, dict[str, set[int]]], whole: dict[str, set[int]]
) -> None:
    value = checkpoint(
        cpus=str(CpuSet.of(cpus)),
        assignments={
            PodUid(pod): {name: CpuSet.of(held) for name, held in of.items()}
            for pod, of in pods.items()
        },
        pod_assignments={PodUid(pod): CpuSet.of(held) for pod, held in whole.items()},
    )

    read = read_cpu_checkpoint(write_cpu_checkpoint(value, True), "static", True, {})

    assert read.default_cpus == value.default_cpus
    assert read.assignments == value.assignments
    assert read.pod_assignments == value.pod_assignments
    assert read.hash_input == cpu_hash_input(value, True)


def test_file_with_the_older_type_name_in_its_hash_is_accepted_with_the_gate_off() -> None:
    printed = cpu_hash_input(checkpoint(cpus="0-3"), False)
    older = printed.replace("CPUManagerCheckpoint", "CPUManagerCheckpointV2", 1)
    text = f'{{"policyName":"static","defaultCpuSet":"0-3","checksum":{fnv1a_32(older)}}}'

    assert read_cpu_checkpoint(text, "static", False, {}).hash_input == older
    with pytest.raises(CorruptCheckpoint):
        read_cpu_checkpoint(text, "static", True, {})


def test_zero_checksum_with_pod_entries_loads_completely_with_the_gate_on() -> None:
    text = (
        '{"policyName":"static","defaultCpuSet":"0","entries":{"p":{"c":"1"}},'
        '"podEntries":{"p":{"cpuSet":"1-2"}},"checksum":0}'
    )

    read = read_cpu_checkpoint(text, "static", True, {})

    assert read.pod_assignments == {"p": CpuSet.parse("1-2")}
    assert read.hash_input is None


def test_pod_entries_before_a_bad_one_survive_and_those_behind_it_do_not() -> None:
    text = (
        '{"policyName":"static","defaultCpuSet":"0","podEntries":'
        '{"a":{"cpuSet":"1"},"b":{"cpuSet":"2-1"},"c":{"cpuSet":"3"}},"checksum":0}'
    )

    read = read_cpu_checkpoint(text, "static", True, {})

    assert read.pod_assignments == {"a": CpuSet.parse("1")}


def test_oldest_layout_is_migrated_by_the_runtimes_containers() -> None:
    text = '{"policyName":"static","defaultCpuSet":"0","entries":{"id1":"1","id2":"2"}}'
    containers = {"id1": (PodUid("p"), "a"), "id2": (PodUid("p"), "b")}

    read = read_cpu_checkpoint(text, "static", False, containers)

    assert read.assignments == {"p": {"a": CpuSet.parse("1"), "b": CpuSet.parse("2")}}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        pytest.param('{"policyName":"none","checksum":0}', UnusableCheckpoint, id="policy"),
        pytest.param('{"policyName":"static","checksum":NaN}', UndecodableCheckpoint, id="nan"),
        pytest.param('{"policyName":5}', UndecodableCheckpoint, id="wrong-kind"),
        pytest.param('{"checksum":18446744073709551616}', UndecodableCheckpoint, id="too-large"),
        pytest.param("\ufeff{}", UndecodableCheckpoint, id="byte-order-mark"),
        pytest.param("[" * 100_000, UndecodableCheckpoint, id="deep"),
    ],
)
def test_refused(text: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        read_cpu_checkpoint(text, "static", False, {})


def test_refusal_sentence() -> None:
    assert CorruptCheckpoint().refusal(CPU_OWNER, "/s/cpu_manager_state") == (
        "could not restore state from checkpoint: checkpoint is corrupted, please drain this node "
        'and delete the CPU manager checkpoint file "/s/cpu_manager_state" before restarting '
        "Kubelet"
    )

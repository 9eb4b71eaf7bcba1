"""The recorded state files of the CPU, memory and device managers, accepted and rejected."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from numalign.kubelet_files.cpu_checkpoint import (
    CpuCheckpoint,
    cpu_hash_input,
    read_cpu_checkpoint,
    write_cpu_checkpoint,
)
from numalign.kubelet_files.device_checkpoint import (
    DeviceCheckpoint,
    device_hash_input,
    read_device_checkpoint,
    write_device_checkpoint,
)
from numalign.kubelet_files.errors import (
    CPU_OWNER,
    MEMORY_OWNER,
    CheckpointError,
    UndecodableCheckpoint,
)
from numalign.kubelet_files.fnv import fnv1a_32
from numalign.kubelet_files.memory_checkpoint import (
    MemoryCheckpoint,
    memory_hash_input,
    read_memory_checkpoint,
    write_memory_checkpoint,
)
from numalign.provider.values import MemoryBlock

RECORDINGS = Path(__file__).parent / "recordings" / "unit" / "checkpoint.jsonl.gz"
CASES = [json.loads(line) for line in gzip.decompress(RECORDINGS.read_bytes()).splitlines()]
DECODER_TEXTS = ("json:", "invalid character", "unexpected end of JSON", "illegal base64")

Checkpoint = CpuCheckpoint | MemoryCheckpoint | DeviceCheckpoint


def cases(suffix: str) -> list[Any]:
    return [pytest.param(c, id=c["id"]) for c in CASES if c["category"].endswith(suffix)]


def read(given: dict[str, Any]) -> Checkpoint:
    gate = given["pod_level_resource_managers"]
    match given["manager"]:
        case "cpu":
            containers = {i: tuple(v) for i, v in given.get("initial_containers", {}).items()}
            return read_cpu_checkpoint(
                given["content"], given["configured_policy"], gate, containers
            )
        case "memory":
            return read_memory_checkpoint(given["content"], given["configured_policy"], gate)
        case "device":
            return read_device_checkpoint(given["content"])
    raise AssertionError(given["manager"])


def blocks(held: tuple[MemoryBlock, ...]) -> list[dict[str, Any]]:
    return [{"numaAffinity": list(b.numa_nodes), "type": b.resource, "size": b.size} for b in held]


def in_recorded_spelling(checkpoint: Checkpoint) -> dict[str, Any]:
    if isinstance(checkpoint, CpuCheckpoint):
        return {
            "default_cpus": str(checkpoint.default_cpus),
            "assignments": {
                pod: {name: str(cpus) for name, cpus in of.items()}
                for pod, of in checkpoint.assignments.items()
            },
            "pod_assignments": {p: str(cpus) for p, cpus in checkpoint.pod_assignments.items()},
        }
    if isinstance(checkpoint, MemoryCheckpoint):
        return {
            "machine_state": {
                str(node): {
                    "numberOfAssignments": entry.number_of_assignments,
                    "memoryMap": {
                        resource: {
                            name.replace("system_reserved", "systemReserved"): amount
                            for name, amount in asdict(table).items()
                        }
                        for resource, table in entry.memory_map.items()
                    },
                    "cells": list(entry.cells),
                }
                for node, entry in checkpoint.machine_state.items()
            },
            "assignments": {
                pod: {name: blocks(held) for name, held in of.items()}
                for pod, of in checkpoint.assignments.items()
            },
            "pod_assignments": {
                pod: {"memoryBlocks": blocks(held)}
                for pod, held in checkpoint.pod_assignments.items()
            },
        }
    return {
        "pod_device_entries": [
            {
                "PodUID": entry.pod_uid,
                "ContainerName": entry.container,
                "ResourceName": entry.resource,
                "DeviceIDs": {str(node): list(ids) for node, ids in entry.ids_by_node.items()},
                "AllocResp": None
                if entry.allocate_response is None
                else base64.b64encode(entry.allocate_response).decode(),
            }
            for entry in checkpoint.entries
        ]
        or None,
        "registered_devices": {r: list(ids) for r, ids in checkpoint.registered.items()},
    }


def test_every_recording_is_in_one_category() -> None:
    assert len(CASES) == len(cases("-written") + cases("-accepted-variant") + cases("-rejected"))


@pytest.mark.parametrize("case", cases("-written") + cases("-accepted-variant"))
def test_accepted_file_means_what_was_recorded(case: dict[str, Any]) -> None:
    checkpoint = read(case["input"])

    assert in_recorded_spelling(checkpoint) == case["expected"]["state"]
    if "hash_input" in case["expected"]:
        assert checkpoint.hash_input == case["expected"]["hash_input"]


@pytest.mark.parametrize("case", cases("-written"))
def test_written_file_is_reproduced_byte_for_byte(case: dict[str, Any]) -> None:
    gate = case["input"]["pod_level_resource_managers"]
    checkpoint = read(case["input"])

    match checkpoint:
        case CpuCheckpoint():
            printed = cpu_hash_input(checkpoint, gate)
            text = write_cpu_checkpoint(checkpoint, gate)
        case MemoryCheckpoint():
            printed = memory_hash_input(checkpoint, gate)
            text = write_memory_checkpoint(checkpoint, gate)
        case DeviceCheckpoint():
            printed = device_hash_input(checkpoint)
            text = write_device_checkpoint(checkpoint)
    assert printed == case["expected"]["hash_input"]
    assert text == case["input"]["content"]
    stored = json.loads(text)
    assert stored.get("checksum", stored.get("Checksum")) == fnv1a_32(printed)


@pytest.mark.parametrize("case", cases("-rejected"))
def test_rejected_file_is_refused_in_the_kubelets_words(case: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError) as refused:
        read(case["input"])

    error = refused.value
    match case["input"]["manager"]:
        case "cpu":
            text = error.refusal(CPU_OWNER, "STATE_DIR/cpu_manager_state")
        case "memory":
            text = error.refusal(MEMORY_OWNER, "STATE_DIR/memory_manager_state")
        case _:
            text = str(error)
    expected = case["expected"]["error"]
    reason = expected.removeprefix("could not restore state from checkpoint: ")
    if reason.startswith(DECODER_TEXTS):
        assert isinstance(error, UndecodableCheckpoint)
    else:
        assert text == expected

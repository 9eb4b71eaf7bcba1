"""Runners of `checkpoint` and `allocation_checkpoint` records: the kubelet's state files."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import asdict
from typing import TypeAlias

from numalign.kubelet_files.allocation_checkpoint import (
    allocation_hash_input,
    read_allocation_checkpoint,
    write_allocation_checkpoint,
)
from numalign.kubelet_files.cpu_checkpoint import CpuCheckpoint, read_cpu_checkpoint
from numalign.kubelet_files.device_checkpoint import DeviceCheckpoint, read_device_checkpoint
from numalign.kubelet_files.errors import (
    CPU_OWNER,
    MEMORY_OWNER,
    CheckpointError,
    UndecodableCheckpoint,
)
from numalign.kubelet_files.fnv import fnv1a_32
from numalign.kubelet_files.memory_checkpoint import MemoryCheckpoint, read_memory_checkpoint
from numalign.provider.values import MemoryBlock
from numalign.replay.excuses import NOT_DECODABLE
from numalign.replay.recordings import Json, RecordingError

_Checkpoint: TypeAlias = CpuCheckpoint | MemoryCheckpoint | DeviceCheckpoint

_OWNERS = {
    "cpu": (CPU_OWNER, "STATE_DIR/cpu_manager_state"),
    "memory": (MEMORY_OWNER, "STATE_DIR/memory_manager_state"),
}


def checkpoint_answer(record: Json) -> Json:
    """What a state file means, or why it is refused."""
    given = record["input"]
    try:
        checkpoint = _read(given)
    except UndecodableCheckpoint:
        return {"error": NOT_DECODABLE}
    except CheckpointError as error:
        if given["manager"] not in _OWNERS:
            return {"error": str(error)}
        owner, path = _OWNERS[given["manager"]]
        return {"error": error.refusal(owner, path)}
    answer: Json = {"state": _state(checkpoint)}
    if "hash_input" in record["expected"]:
        answer["hash_input"] = checkpoint.hash_input
    return answer


def allocation_checkpoint_expected(record: Json) -> Json:
    """What the record says that is to be compared: all of it but its input and its source."""
    expected: Json = {key: record[key] for key in ("checksum", "error") if key in record}
    if "file" in record and "error" not in record:
        expected |= {"data": record["data"], "rewritten": record["file"]}
    return expected


def allocation_checkpoint_answer(record: Json) -> Json:
    """Checksum and meaning of an allocated-resources file, or why it is refused (ALLOC-4..8)."""
    answer: Json = {}
    if "checksum" in record:
        answer["checksum"] = fnv1a_32("(string)" + record["data"])
    if "file" not in record:
        return answer
    try:
        checkpoint = read_allocation_checkpoint(record["file"])
    except CheckpointError as error:
        return {**answer, "error": str(error)}
    return {
        **answer,
        "data": allocation_hash_input(checkpoint).removeprefix("(string)"),
        "rewritten": write_allocation_checkpoint(checkpoint),
    }


def _read(given: Json) -> _Checkpoint:
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
    raise RecordingError(f"unknown manager {given['manager']}")


def _state(checkpoint: _Checkpoint) -> Json:
    match checkpoint:
        case CpuCheckpoint():
            return _cpu_state(checkpoint)
        case MemoryCheckpoint():
            return _memory_state(checkpoint)
        case DeviceCheckpoint():
            return _device_state(checkpoint)


def _cpu_state(checkpoint: CpuCheckpoint) -> Json:
    return {
        "default_cpus": str(checkpoint.default_cpus),
        "assignments": {
            pod: {name: str(cpus) for name, cpus in containers.items()}
            for pod, containers in checkpoint.assignments.items()
        },
        "pod_assignments": {pod: str(cpus) for pod, cpus in checkpoint.pod_assignments.items()},
    }


def _memory_state(checkpoint: MemoryCheckpoint) -> Json:
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
            pod: {name: _blocks(held) for name, held in containers.items()}
            for pod, containers in checkpoint.assignments.items()
        },
        "pod_assignments": {
            pod: {"memoryBlocks": _blocks(held)} for pod, held in checkpoint.pod_assignments.items()
        },
    }


def _device_state(checkpoint: DeviceCheckpoint) -> Json:
    entries = [
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
    return {
        "pod_device_entries": entries or None,
        "registered_devices": {r: list(ids) for r, ids in checkpoint.registered.items()},
    }


def _blocks(held: Iterable[MemoryBlock]) -> list[Json]:
    return [{"numaAffinity": list(b.numa_nodes), "type": b.resource, "size": b.size} for b in held]

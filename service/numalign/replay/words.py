"""From the services' messages to the spelling of the recordings. Pure.

One function for each thing that a recording writes down; what a message cannot tell apart
(a resource without allocated devices from one that was never asked for) is left out on both
sides.
"""

from __future__ import annotations

from collections.abc import Iterable

from numalign.families.expand import expanded_list
from numalign.model.numa_mask import NumaMask, nodes_of
from numalign.provider.hint_messages import list_from_message
from numalign.replay.recordings import Json
from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb

NO_AFFINITY: Json = {"nodes": None, "preferred": False}


def hint_words(hint: pb.Hint) -> Json:
    """A hint; `nodes` None is one without affinity."""
    return {
        "nodes": list(nodes_of(NumaMask(hint.mask))) if hint.HasField("mask") else None,
        "preferred": hint.preferred,
    }


def merge_words(merge: pb.MergeRecord) -> Json:
    """One merge: what every provider returned, the best hint and the verdict."""
    return {
        "container": merge.container or None,
        "providers": [
            {
                "provider": answer.provider,
                "hints": {
                    resource: _list_words(hints)
                    for resource, hints in answer.hints.resources.items()
                }
                if answer.HasField("hints")
                else None,
            }
            for answer in merge.providers
        ],
        "best": {**hint_words(merge.best), "admit": merge.admitted},
    }


def allocate_call_words(call: pb.AllocateCall) -> Json:
    """One allocate call; `container` None is an allocation of the pod."""
    return {
        "provider": call.provider,
        "container": call.container or None,
        "error": call.error or None,
    }


def plugin_call_words(calls: Iterable[pb.PluginCall]) -> list[Json]:
    """Plugin calls; those of one container by resource, since their order is arbitrary."""
    words: list[Json] = []
    run: list[Json] = []
    for call in calls:
        if run and run[-1]["container"] != call.container:
            words += sorted(run, key=_resource_of)
            run = []
        run.append(_plugin_call(call))
    return words + sorted(run, key=_resource_of)


def container_words(allocation: pb.ContainerAllocation) -> Json:
    """What one container was given."""
    return {
        "affinity": hint_words(allocation.affinity)
        if allocation.HasField("affinity")
        else NO_AFFINITY,
        "cpus": allocation.cpus,
        "memory_blocks": block_words(allocation.memory),
        "devices": {given.resource: list(given.ids) for given in allocation.devices},
    }


def pod_words(allocation: pb.PodAllocation) -> Json:
    """What a pod was given as a whole; no key for what it was not given."""
    words: Json = {}
    if allocation.cpus:
        words["pod_cpus"] = allocation.cpus
    if allocation.memory:
        words["pod_memory_blocks"] = block_words(allocation.memory)
    return words


def block_words(blocks: Iterable[pb.MemoryBlock]) -> list[Json]:
    """Memory blocks, sorted by type."""
    words = [
        {"type": block.resource, "numa_affinity": list(block.numa_nodes), "size": block.size}
        for block in blocks
    ]
    return sorted(words, key=_type_of)


def cpu_words(state: hp.CpuState) -> Json:
    """The CPU provider's part of a state."""
    assignments: dict[str, Json] = {}
    for held in state.assignments:
        assignments.setdefault(held.pod_uid, {})[held.container] = held.cpus
    return {"default_cpus": state.default_cpus, "cpu_assignments": assignments}


def memory_words(state: hp.MemoryState) -> Json:
    """The memory provider's part of a state."""
    assignments: dict[str, Json] = {}
    for held in state.assignments:
        assignments.setdefault(held.pod_uid, {})[held.container] = block_words(held.blocks)
    return {
        "machine_memory_state": {
            str(node.numa_node): {
                "number_of_assignments": node.number_of_assignments,
                "cells": list(node.cells),
                "memory": {
                    table.resource: {
                        "total": table.total,
                        "systemReserved": table.system_reserved,
                        "allocatable": table.allocatable,
                        "reserved": table.reserved,
                        "free": table.free,
                    }
                    for table in node.tables
                },
            }
            for node in state.nodes
        },
        "memory_assignments": assignments,
    }


def device_words(state: hp.DeviceState) -> Json:
    """The device provider's part of a state."""
    assignments: dict[str, Json] = {}
    for held in state.assignments:
        assignments.setdefault(held.pod_uid, {})[held.container] = {
            given.resource: list(given.ids) for given in held.devices
        }
    return {
        "device_allocated": {r.resource: list(r.allocated) for r in state.resources if r.allocated},
        "pod_devices": assignments,
    }


def _list_words(hints: pb.HintList) -> list[Json] | None:
    """One list, written out where it is described: recorded lists are."""
    if hints.kind == pb.HintList.KIND_NO_PREFERENCE:
        return None
    listed = expanded_list(list_from_message(hints, "hints")) or ()
    return [
        {
            "nodes": None if hint.mask is None else list(nodes_of(hint.mask)),
            "preferred": hint.preferred,
        }
        for hint in listed
    ]


def _plugin_call(call: pb.PluginCall) -> Json:
    """One plugin call as recorded: what is empty is left out."""
    words: Json = {"container": call.container, "resource": call.resource, "call": call.call}
    for key in ("devices", "available", "must_include", "response"):
        ids = list(getattr(call, key))
        if ids:
            words[key] = ids
    if call.call == "GetPreferredAllocation":
        words["size"] = call.size
    if call.error:
        words["error"] = call.error
    return words


def _resource_of(call: Json) -> str:
    resource: str = call["resource"]
    return resource


def _type_of(block: Json) -> str:
    type_: str = block["type"]
    return type_

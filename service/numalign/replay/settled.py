"""Books without the pods that are not admitted, so that two of them can be compared. Pure.

The kubelet leaves what a refused or ended pod holds in its books until the next clean-up.
What is left when that is taken out is what both must agree on; for memory that was booked
over several NUMA nodes only the sum over the nodes says something, since how much came from
which node is not recorded.
"""

from __future__ import annotations

import copy
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TypeAlias

from numalign.model.cpu_set import NO_CPUS, CpuSet
from numalign.replay.recordings import Json


@dataclass(slots=True)
class PodParts:
    """What pods hold as a whole, which no state says: noted from every answer."""

    cpus: dict[str, str] = field(default_factory=dict)
    blocks: dict[str, list[Json]] = field(default_factory=dict)

    def note(self, uid: str, expect: Json) -> None:
        """An answer about a pod."""
        if "pod_cpus" in expect:
            self.cpus[uid] = expect["pod_cpus"]
        if "pod_memory_blocks" in expect:
            self.blocks[uid] = expect["pod_memory_blocks"]


Side: TypeAlias = tuple[Json, PodParts]
"""A state, and what pods hold as a whole there."""


def settled(left: Side, right: Side, active: AbstractSet[str]) -> tuple[Json, Json]:
    """Both states as far as they speak of active pods."""
    dropped = [_dropped_blocks(side, active) for side in (left, right)]
    wide = {tuple(b["numa_affinity"]) for blocks in dropped for b in blocks if _is_wide(b)}
    grouped = frozenset(node for group in wide for node in group)
    first, second = (
        _settled(side, active, blocks, grouped)
        for side, blocks in zip((left, right), dropped, strict=True)
    )
    return first, second


def _settled(
    side: Side, active: AbstractSet[str], dropped: list[Json], grouped: frozenset[int]
) -> Json:
    state, parts = side
    devices = _of(state["pod_devices"], active)
    return {
        "default_cpus": _default_cpus(state, parts, active),
        "cpu_assignments": _of(state["cpu_assignments"], active),
        "memory_assignments": _of(state["memory_assignments"], active),
        "machine_memory_state": _tables(state["machine_memory_state"], dropped, grouped),
        "pod_devices": devices,
        "device_allocated": _allocated(devices),
    }


def _of(assignments: Json, active: AbstractSet[str]) -> Json:
    return {uid: held for uid, held in assignments.items() if uid in active}


def _default_cpus(state: Json, parts: PodParts, active: AbstractSet[str]) -> str:
    """The shared CPUs, with those of inactive pods."""
    cpus = CpuSet.parse(state["default_cpus"]).bits
    for uid, containers in state["cpu_assignments"].items():
        if uid not in active:
            for text in (*containers.values(), parts.cpus.get(uid, "")):
                cpus |= CpuSet.parse(text).bits
    return str(CpuSet(cpus) if cpus else NO_CPUS)


def _allocated(devices: Json) -> Json:
    allocated: dict[str, set[str]] = {}
    for containers in devices.values():
        for resources in containers.values():
            for resource, ids in resources.items():
                allocated.setdefault(resource, set()).update(ids)
    return {resource: sorted(ids) for resource, ids in allocated.items() if ids}


def _dropped_blocks(side: Side, active: AbstractSet[str]) -> list[Json]:
    """The blocks of inactive pods that are booked in the tables."""
    state, parts = side
    blocks: list[Json] = []
    for uid, containers in state["memory_assignments"].items():
        if uid in active:
            continue
        if uid in parts.blocks:
            blocks += parts.blocks[uid]
        else:
            blocks += [block for held in containers.values() for block in held]
    return blocks


def _tables(machine: Json, dropped: list[Json], grouped: frozenset[int]) -> Json:
    """The tables without the dropped blocks; the nodes in `grouped` only as a sum."""
    tables: Json = copy.deepcopy(machine)
    sums: dict[str, Json] = {}
    for block in dropped:
        nodes = [str(node) for node in block["numa_affinity"]]
        for node in nodes:
            tables[node]["number_of_assignments"] -= 1
            if tables[node]["number_of_assignments"] == 0:
                tables[node]["cells"] = [int(node)]
        table = tables[nodes[0]]["memory"][block["type"]]
        table["reserved"] -= block["size"]
        table["free"] += block["size"]
    for member in sorted(grouped):
        for resource, table in tables.get(str(member), {"memory": {}})["memory"].items():
            total = sums.setdefault(resource, {"reserved": 0, "free": 0})
            for key in total:
                total[key] += table.pop(key)
    return {**tables, "several_nodes": sums} if sums else tables


def _is_wide(block: Json) -> bool:
    return len(block["numa_affinity"]) > 1

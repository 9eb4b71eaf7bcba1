"""A recording's node as a configuration, so that a replay starts real services from a file.

The schema of a node is that of tests/conformance/recordings/scenarios/README.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from numalign.config.kubelet_document import API_VERSION, EXTENSION, KIND
from numalign.config.settings import Compatibility, Validation


class TopologyManagerNode(TypedDict):
    """Section `topology_manager` of a node."""

    policy: str
    scope: str
    policy_options: dict[str, str]


class CpuManagerNode(TypedDict, total=False):
    """Section `cpu_manager` of a node."""

    policy: str
    policy_options: dict[str, str]
    reserved_cpus: str
    reserved_milli_cpu: int


class ReservedMemoryNode(TypedDict):
    """An entry of `memory_manager.reserved_memory`."""

    numa_node: int
    limits: dict[str, str]


class MemoryManagerNode(TypedDict):
    """Section `memory_manager` of a node."""

    policy: str
    reserved_memory: list[ReservedMemoryNode]
    node_allocatable_reservation: dict[str, str]


class ScenarioNode(TypedDict):
    """The `node` of a scenario; machine and devices are passed on as they are."""

    machine: dict[str, object]
    topology_manager: TopologyManagerNode
    cpu_manager: CpuManagerNode
    memory_manager: MemoryManagerNode
    devices: list[dict[str, object]]


def scenario_document(
    node: ScenarioNode,
    feature_gates: Mapping[str, bool],
    extension: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """The configuration document of a recorded node.

    The reservation is stated, as the recording states it, and the kubelet's validation is
    left out, because recordings hold what the managers themselves say. `extension` sets
    further keys of the `numalign` section (directories, say) or replaces those set here.
    """
    topology, cpu, memory = node["topology_manager"], node["cpu_manager"], node["memory_manager"]
    reservation: dict[str, str] = dict(memory["node_allocatable_reservation"])
    if "reserved_milli_cpu" in cpu:
        reservation["cpu"] = f"{cpu['reserved_milli_cpu']}m"
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "featureGates": dict(feature_gates),
        "topologyManagerPolicy": topology["policy"],
        "topologyManagerScope": topology["scope"],
        "topologyManagerPolicyOptions": dict(topology["policy_options"]),
        "cpuManagerPolicy": cpu["policy"],
        "cpuManagerPolicyOptions": dict(cpu["policy_options"]),
        "reservedSystemCPUs": cpu.get("reserved_cpus", ""),
        "memoryManagerPolicy": memory["policy"],
        "reservedMemory": [
            {"numaNode": entry["numa_node"], "limits": dict(entry["limits"])}
            for entry in memory["reserved_memory"]
        ],
        EXTENSION: {
            "compatibility": Compatibility.KUBELET.value,
            "validation": Validation.MANAGERS.value,
            "machine": node["machine"],
            "devices": node["devices"],
            "nodeAllocatableReservation": reservation,
            **(extension or {}),
        },
    }

"""The recorded scenarios, and what is needed to turn their JSON into the values of the model.

Separate from the runners so that the CPU, memory, device and topology tests read recordings
in one way. Scenarios stay plain JSON objects: their README is the schema.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from numalign.model.feature_gates import FeatureGates
from numalign.model.hint import ProviderHints, TopologyHint
from numalign.model.ids import PodUid
from numalign.model.machine import Core, HugePages, Machine, NumaNode
from numalign.model.numa_mask import mask_of
from numalign.model.pod import Container, Pod, Resources
from numalign.model.quantity import Quantity
from numalign.model.settings import CpuSettings, TopologySettings

Json: TypeAlias = dict[str, Any]

RECORDINGS = Path(__file__).parent / "recordings"

_GATES = {
    "cpu_manager_policy_alpha_options": "CPUManagerPolicyAlphaOptions",
    "cpu_manager_policy_beta_options": "CPUManagerPolicyBetaOptions",
    "topology_manager_policy_alpha_options": "TopologyManagerPolicyAlphaOptions",
    "topology_manager_policy_beta_options": "TopologyManagerPolicyBetaOptions",
    "pod_level_resources": "PodLevelResources",
    "pod_level_resource_managers": "PodLevelResourceManagers",
    "dra_extended_resource": "DRAExtendedResource",
    "resource_health_status": "ResourceHealthStatus",
    "in_place_pod_vertical_scaling": "InPlacePodVerticalScaling",
    "in_place_pod_vertical_scaling_exclusive_cpus": "InPlacePodVerticalScalingExclusiveCPUs",
    "in_place_pod_vertical_scaling_exclusive_memory": "InPlacePodVerticalScalingExclusiveMemory",
}


def scenario_topics() -> tuple[str, ...]:
    """Names of the scenario files, sorted."""
    return tuple(sorted(p.name.split(".")[0] for p in (RECORDINGS / "scenarios").glob("*.gz")))


@cache
def load_scenarios(topic: str | None = None) -> tuple[Json, ...]:
    """The scenarios of one file (`restart`), or of all files in order of name.

    The objects are shared between callers: do not change them.
    """
    if topic is None:
        return tuple(s for name in scenario_topics() for s in load_scenarios(name))
    return load_lines(RECORDINGS / "scenarios" / f"{topic}.jsonl.gz")


def load_unit(name: str) -> tuple[Json, ...]:
    """The vectors of one unit recording, such as `cpu_assignment`."""
    return load_lines(RECORDINGS / "unit" / f"{name}.jsonl.gz")


def load_lines(path: Path) -> tuple[Json, ...]:
    """The objects of a compressed file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines)


def pod_from_scenario(obj: Json) -> Pod:
    """The pod of an `admit` step or of a pod_resources vector."""
    metadata: Json = obj.get("metadata", {})
    spec: Json = obj.get("spec", {})
    status: Json = obj.get("status", {})
    section = spec.get("resources")
    return Pod(
        uid=PodUid(metadata.get("uid", "")),
        name=metadata.get("name", ""),
        namespace=metadata.get("namespace", ""),
        init_containers=tuple(_container(c, is_init=True) for c in spec.get("initContainers", ())),
        containers=tuple(_container(c, is_init=False) for c in spec.get("containers", ())),
        resources=None if section is None else _resources(section),
        overhead=quantities(spec.get("overhead")),
        status_qos_class=status.get("qosClass", ""),
    )


def quantities(obj: Mapping[str, Any] | None) -> dict[str, Quantity]:
    """A resource list; None is an empty one."""
    return {name: Quantity.parse(str(text)) for name, text in (obj or {}).items()}


def gates_from_scenario(scenario: Json) -> FeatureGates:
    """The feature gates of a scenario; those it does not name have their defaults."""
    recorded: Json = scenario["feature_gates"]
    return FeatureGates(**{f: recorded[gate] for f, gate in _GATES.items() if gate in recorded})


def machine_from_scenario(node: Json) -> Machine:
    """The machine of a `node` section."""
    machine: Json = node["machine"]
    return Machine(
        numa_nodes=tuple(
            NumaNode(
                id=n["id"],
                memory_bytes=n["memory_bytes"],
                hugepages=tuple(HugePages(**pages) for pages in n.get("hugepages") or ()),
                distances=None if n.get("distances") is None else tuple(n["distances"]),
                cores=tuple(Core(**{**c, "threads": tuple(c["threads"])}) for c in n["cores"]),
            )
            for n in machine["numa_nodes"]
        ),
        num_cpus=machine.get("num_cpus"),
        num_sockets=machine.get("num_sockets"),
    )


def topology_settings_from_scenario(node: Json) -> TopologySettings:
    """The `topology_manager` part of a `node` section."""
    return TopologySettings(**node["topology_manager"])


def cpu_settings_from_scenario(node: Json) -> CpuSettings:
    """The `cpu_manager` part of a `node` section."""
    return CpuSettings(**node["cpu_manager"])


def hints_from_scenario(obj: Json | None) -> ProviderHints:
    """What one provider returned: the absences of the recording stay distinct."""
    if obj is None:
        return None
    return {
        resource: None if hints is None else tuple(hint_from_scenario(h) for h in hints)
        for resource, hints in obj.items()
    }


def hint_from_scenario(obj: Json) -> TopologyHint:
    """One hint; `nodes` null is a hint without affinity."""
    nodes = obj["nodes"]
    return TopologyHint(None if nodes is None else mask_of(nodes), obj["preferred"])


def _container(obj: Json, *, is_init: bool) -> Container:
    return Container(
        name=obj["name"],
        resources=_resources(obj.get("resources") or {}),
        is_init=is_init,
        restartable=is_init and obj.get("restartPolicy") == "Always",
    )


def _resources(obj: Json) -> Resources:
    return Resources(requests=quantities(obj.get("requests")), limits=quantities(obj.get("limits")))

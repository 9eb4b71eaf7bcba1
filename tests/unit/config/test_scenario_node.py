"""Every recorded node becomes a configuration that loads back to the same values."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from numalign.config.defaults import Defaults
from numalign.config.from_document import settings_from_document
from numalign.config.loader import load_settings
from numalign.config.scenario_node import scenario_document
from numalign.config.settings import Compatibility, MachineInline, Settings, Validation
from numalign.config.validation import validate_kubelet
from numalign.machine.schema import document_of_machine
from numalign.model.quantity import Quantity

SCENARIOS = Path(__file__).parents[2] / "conformance" / "recordings" / "scenarios"
TOPICS = sorted(path.name.removesuffix(".jsonl.gz") for path in SCENARIOS.glob("*.jsonl.gz"))


def _scenarios(topic: str) -> Iterator[dict[str, Any]]:
    with gzip.open(SCENARIOS / f"{topic}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _nodes(topic: str) -> Iterator[tuple[Any, dict[str, bool]]]:
    """Each scenario's node, and what each restart makes of it."""
    for scenario in _scenarios(topic):
        node = scenario["node"]
        yield node, scenario["feature_gates"]
        for step in scenario.get("steps", ()):
            if step.get("node_override"):
                node = {**node, **step["node_override"]}
                yield node, scenario["feature_gates"]


def _machine_without_defaults(machine: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in machine.items() if value is not None}


def _quantities(texts: dict[str, str]) -> dict[str, Quantity]:
    return {name: Quantity.parse(text) for name, text in texts.items()}


def _check(settings: Settings, node: dict[str, Any]) -> None:
    topology, cpu, memory = node["topology_manager"], node["cpu_manager"], node["memory_manager"]
    assert (settings.topology.policy, settings.topology.scope) == (
        topology["policy"],
        topology["scope"],
    )
    assert settings.topology.policy_options == topology["policy_options"]
    assert settings.cpu.policy == cpu["policy"]
    assert settings.cpu.policy_options == cpu["policy_options"]
    assert settings.cpu.reserved_cpus == cpu["reserved_cpus"]
    listed = len(cpu["reserved_cpus"].split(",")) if cpu["reserved_cpus"] else 0
    if "reserved_milli_cpu" in cpu:
        assert settings.cpu.reserved_milli_cpu == cpu["reserved_milli_cpu"]
    elif "-" not in cpu["reserved_cpus"]:
        assert settings.cpu.reserved_milli_cpu == (listed * 1000 or None)
    assert settings.memory.policy == memory["policy"]
    assert [(e.numa_node, dict(e.limits)) for e in settings.memory.reserved_memory] == [
        (entry["numa_node"], _quantities(entry["limits"])) for entry in memory["reserved_memory"]
    ]
    assert settings.memory.node_allocatable_reservation == _quantities(
        memory["node_allocatable_reservation"]
    )
    assert isinstance(settings.machine, MachineInline)
    assert document_of_machine(settings.machine.machine) == _machine_without_defaults(
        node["machine"]
    )
    assert [
        {
            "resource": resource.resource,
            "preferred_allocation": resource.preferred_allocation.value,
            "devices": [
                {
                    "id": device.id,
                    "numa_nodes": None if device.numa_nodes is None else list(device.numa_nodes),
                    "healthy": device.healthy,
                }
                for device in resource.devices
            ],
        }
        for resource in settings.devices
    ] == node["devices"]
    assert settings.compatibility is Compatibility.KUBELET
    assert settings.validation is Validation.MANAGERS
    assert settings.warnings == ()


def test_all_topics_are_there() -> None:
    assert len(TOPICS) == 19
    assert sum(1 for topic in TOPICS for _ in _scenarios(topic)) == 1304


@pytest.mark.parametrize("topic", TOPICS)
def test_every_node_loads(topic: str, defaults: Callable[..., Defaults]) -> None:
    for node, gates in _nodes(topic):
        _check(settings_from_document(scenario_document(node, gates), defaults()), node)


def test_nodes_survive_a_file(tmp_path: Path) -> None:
    for topic in TOPICS:
        node, gates = next(_nodes(topic))
        document = scenario_document(node, gates, {"stateDirectory": str(tmp_path / "state")})
        path = tmp_path / f"{topic}.yaml"
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        settings = load_settings(path, {}, True)

        _check(settings, node)
        assert settings.state_directory == tmp_path / "state"


def test_kubelet_validation_refuses_only_names_and_zeros() -> None:
    refused = {}
    for scenario in _scenarios("construct_errors"):
        errors = validate_kubelet(scenario_document(scenario["node"], scenario["feature_gates"]))
        if errors:
            refused[scenario.get("construct_error")] = errors

    policy = (
        "invalid configuration: topologyManagerPolicy (--topology-manager-policy) "
        '"bogus" must be one of: ["none" "best-effort" "restricted" "single-numa-node"]'
    )
    scope = (
        "invalid configuration: topologyManagerScope (--topology-manager-scope) "
        '"node" must be one of: "container", or "pod"'
    )
    zero = (
        "invalid configuration: reserved memory may not be zero for NUMA node 0 and "
        'resource "memory"'
    )
    assert refused == {
        'unknown policy: "bogus"': [policy],
        'unknown scope: "node"': [scope],
        "[memorymanager] you should specify the system reserved memory": [zero],
    }

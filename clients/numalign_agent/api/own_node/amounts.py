"""What a node has and what of it pods may use, from the services' picture of it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from numalign.model.cpu_set import CpuSet
from numalign.model.quantity import Quantity
from numalign.model.resource_names import is_extended
from numalign.v1.node_resources_pb2 import NodeResources
from numalign_agent.api.own_node.facts import NodeFacts

MAX_PODS = 110

Amounts = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NodeAmounts:
    """Quantities by resource name, as a Node's status has them."""

    capacity: Amounts
    allocatable: Amounts


def node_amounts(resources: NodeResources, facts: NodeFacts) -> NodeAmounts:
    """The amounts of the machine, with the devices that the device provider knows.

    Memory and huge pages that are managed may be used as far as the NUMA nodes allow.
    """
    capacity = {
        "pods": str(MAX_PODS),
        "memory": _in_kib(facts.memory),
        "ephemeral-storage": _in_kib(facts.storage),
    }
    allocatable = dict(capacity)
    if resources.HasField("cpus"):
        every, reserved = (CpuSet.parse(t) for t in (resources.cpus.all, resources.cpus.reserved))
        capacity["cpu"] = str(len(every))
        allocatable["cpu"] = str(len(every - reserved))
    managed: Counter[str] = Counter()
    for node in resources.numa_nodes:
        for memory in node.memory:
            managed[memory.resource] += memory.allocatable
    for name, amount in managed.items():
        allocatable[name] = _in_kib(amount)
        capacity.setdefault(name, allocatable[name])
    for devices in resources.devices:
        capacity[devices.resource] = str(devices.capacity)
        allocatable[devices.resource] = str(devices.allocatable)
    return NodeAmounts(capacity, allocatable)


def _in_kib(amount: int) -> str:
    """Bytes, in the form that an API server gives them."""
    return Quantity.parse(f"{amount // 1024}Ki").canonical()


def changed(shown: Amounts, now: Amounts) -> dict[str, str]:
    """What a patch has to say: other amounts, and 0 of extended resources that are gone."""
    gone = {
        name: "0"
        for name, amount in shown.items()
        if name not in now and is_extended(name) and amount != "0"
    }
    return {name: amount for name, amount in now.items() if shown.get(name) != amount} | gone

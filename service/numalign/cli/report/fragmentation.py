"""How scattered what is free is: what one container could get from one node, against all of it.

Pure functions over what the node says it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from numalign.v1.node_resources_pb2 import NodeResources, NumaNodeResources


@dataclass(frozen=True, slots=True)
class Scattered:
    """One resource: what all nodes have free together, and the most that one node can give."""

    resource: str
    free: int
    largest: int
    node: int | None

    @property
    def share(self) -> float:
        """What of the free amount no single node can give, 0 to 1; 0 where nothing is free."""
        return 1 - self.largest / self.free if self.free else 0.0


def scattered(resources: NodeResources) -> tuple[Scattered, ...]:
    """Every resource that some node has, CPUs first, then memory, then devices by name.

    What is free together is the sum of what each node can give one container.
    """
    by_node = {node.numa_node: _offers(node) for node in resources.numa_nodes}
    names = sorted({name for offers in by_node.values() for name in offers}, key=_order)
    found = []
    for name in names:
        amounts = {node: offers.get(name, 0) for node, offers in by_node.items()}
        best = max(amounts, key=lambda node: (amounts[node], -node))
        largest = amounts[best]
        found.append(Scattered(name, sum(amounts.values()), largest, best if largest else None))
    return tuple(found)


def _offers(node: NumaNodeResources) -> Mapping[str, int]:
    shape = node.largest_shape
    cpus = {"cpu": shape.cpus} if node.HasField("cpus") else {}
    return {**cpus, **shape.memory, **shape.devices}


def _order(name: str) -> tuple[int, str]:
    if name == "cpu":
        return 0, ""
    return (1 if name == "memory" or name.startswith("hugepages-") else 2), name

"""Short ways to write machines, pods and engines for the memory tests.

The machine of the specification's examples is `example_machine`: nodes of 10Gi with 1Gi
reserved on each, so 9Gi to give away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

from numalign.families.expand import expanded_list
from numalign.memory.engine import SAFE, MemoryEngine, MemoryStrategies, build_engine
from numalign.memory.machine_state import MachineState, default_machine_state
from numalign.memory.state import MemoryState
from numalign.model.feature_gates import FeatureGates
from numalign.model.hint import NO_HINT, ProviderHints, TopologyHint
from numalign.model.ids import NumaId, PodUid
from numalign.model.machine import HugePages, Machine, NumaNode
from numalign.model.numa_mask import mask_of
from numalign.model.pod import Container, Pod, Resources
from numalign.model.quantity import Quantity
from numalign.model.settings import MemorySettings, ReservedMemory
from numalign.provider.engine import Allocated, Sources
from numalign.provider.values import MemoryBlock

GI = 1 << 30
MI = 1 << 20
GATES = FeatureGates()
MANAGED_GATES = FeatureGates(pod_level_resource_managers=True)


def quantities(amounts: Mapping[str, str]) -> dict[str, Quantity]:
    return {name: Quantity.parse(text) for name, text in amounts.items()}


def machine(nodes: int, gib: int = 10, huge_2mi: int = 0) -> Machine:
    pools = (HugePages(page_size_kib=2048, count=huge_2mi),) if huge_2mi else ()
    return Machine(
        numa_nodes=tuple(
            NumaNode(id=node, memory_bytes=gib * GI, hugepages=pools) for node in range(nodes)
        )
    )


def settings(nodes: int, reserved: str = "1Gi", policy: str = "Static") -> MemorySettings:
    """`reserved` memory on every node."""
    each = Quantity.parse(reserved)
    total = Quantity.parse("0")
    for _ in range(nodes):
        total = total + each
    return MemorySettings(
        policy=policy,
        reserved_memory=tuple(
            ReservedMemory(numa_node=NumaId(node), limits={"memory": each}) for node in range(nodes)
        ),
        node_allocatable_reservation={"memory": total},
    )


def books(nodes: int, huge_2mi: int = 0) -> MachineState:
    """The empty books of the example machine."""
    reserved = {NumaId(node): {"memory": GI} for node in range(nodes)}
    return default_machine_state(machine(nodes, huge_2mi=huge_2mi), reserved)


def container(
    name: str, memory: str = "", *, init: bool = False, sidecar: bool = False, **more: str
) -> Container:
    """A container with equal requests and limits; `hugepages_2Mi` writes that resource."""
    amounts = {key.replace("_", "-"): text for key, text in more.items()}
    if memory:
        amounts |= {"memory": memory}
        amounts.setdefault("cpu", "1")
    listed = quantities(amounts)
    return Container(
        name=name,
        resources=Resources(requests=listed, limits=listed),
        is_init=init or sidecar,
        restartable=sidecar,
    )


def pod(
    uid: str, *containers: Container, level: Mapping[str, str] | None = None, qos: str = ""
) -> Pod:
    section = None
    if level is not None:
        section = Resources(requests=quantities(level), limits=quantities(level))
    return Pod(
        uid=PodUid(uid),
        name=uid,
        init_containers=tuple(c for c in containers if c.is_init),
        containers=tuple(c for c in containers if not c.is_init),
        resources=section,
        status_qos_class=qos,
    )


def hint(*nodes: int, preferred: bool = True) -> TopologyHint:
    return TopologyHint(mask_of(nodes), preferred)


def block(size: int, *nodes: int, resource: str = "memory") -> MemoryBlock:
    return MemoryBlock(
        numa_nodes=tuple(NumaId(node) for node in nodes), resource=resource, size=size
    )


def listed(hints: ProviderHints, resource: str = "memory") -> list[str]:
    """Hints in the notation of the specification: `0,1*` is preferred."""
    assert hints is not None
    found = expanded_list(hints[resource])
    assert found is not None
    texts = []
    for one in found:
        assert one.mask is not None
        nodes = ",".join(str(node) for node in range(64) if one.mask >> node & 1)
        texts.append(nodes + ("*" if one.preferred else ""))
    return texts


@dataclass(slots=True)
class Node:
    """An engine with the state it is at."""

    engine: MemoryEngine
    state: MemoryState

    def hints(self, of: Pod, name: str | None = None) -> ProviderHints:
        if name is None:
            return self.engine.pod_topology_hints(self.state, of, Sources()).hints
        return self.engine.topology_hints(self.state, of, of.container(name), Sources()).hints

    def allocate(self, of: Pod, name: str, affinity: TopologyHint = NO_HINT) -> str | None:
        """The error text, or None; the state goes on either way."""
        return self._take(
            asyncio.run(
                self.engine.allocate(self.state, of, of.container(name), affinity, Sources())
            )
        )

    def allocate_pod(self, of: Pod, affinity: TopologyHint = NO_HINT) -> str | None:
        return self._take(
            asyncio.run(self.engine.allocate_pod(self.state, of, affinity, Sources()))
        )

    def start_container(self, of: Pod, name: str) -> None:
        self.state = self.engine.add_container(self.state, of, of.container(name))

    def restart(self) -> tuple[str, ...]:
        started = self.engine.start(self.engine.encode(self.state))
        self.state = started.state
        return started.reports

    def reserved(self, resource: str = "memory") -> list[int]:
        return [memory.tables[resource].reserved for memory in self.state.machine.values()]

    def sizes(self, uid: str) -> dict[str, list[int]]:
        entries = self.state.containers.get(PodUid(uid), {})
        return {name: [b.size for b in blocks] for name, blocks in entries.items()}

    def forget_reuse(self) -> None:
        self.state = replace(self.state, reusable={})

    def _take(self, outcome: Allocated[MemoryState]) -> str | None:
        self.state = outcome.state
        return None if outcome.failure is None else outcome.failure.message


def node(
    nodes: int,
    *,
    gates: FeatureGates = GATES,
    huge_2mi: int = 0,
    strategies: MemoryStrategies = SAFE,
) -> Node:
    """The example machine, empty."""
    engine = build_engine(settings(nodes), machine(nodes, huge_2mi=huge_2mi), gates, strategies)
    return Node(engine, engine.start(None).state)

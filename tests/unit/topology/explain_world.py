"""A node of real engines behind a small fan-out in this process, to be asked and explained.

Everything an admission does is here but the sockets: the scope asks the engines, a refused
pod leaves nothing, and the explainer gets the facts as the services would send them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from numalign.cpu import strategies as cpu_strategies
from numalign.cpu.engine import build_engine as build_cpu
from numalign.device.engine import build_engine as build_device
from numalign.device.static_plugins import StaticPlugins, static_inventory
from numalign.device.strategies import DeviceStrategies
from numalign.memory import engine as memory_engine
from numalign.model.feature_gates import FeatureGates
from numalign.model.hint import TopologyHint
from numalign.model.ids import DeviceId, NumaId, PodUid
from numalign.model.machine import Core, HugePages, Machine, NumaNode
from numalign.model.pod import Container, Pod, Resources
from numalign.model.quantity import Quantity
from numalign.model.settings import (
    KUBELET_PLACEMENT,
    CpuSettings,
    MemorySettings,
    Placement,
    ReservedMemory,
    StaticDevice,
    StaticResource,
    TopologySettings,
)
from numalign.provider.engine import Engine, Sources
from numalign.provider.messages import call_to_message, facts_to_messages
from numalign.provider.values import AllocationFailure, ResourceFacts
from numalign.topology.construct import build_policy
from numalign.topology.explainer import Explainer
from numalign.topology.ports import ProviderAnswer
from numalign.topology.scope import ScopeResult
from numalign.v1 import types_pb2 as pb

GI = 1 << 30
MI = 1 << 20
GPU = "example.com/gpu"
NIC = "example.com/nic"
GATES = FeatureGates(cpu_manager_policy_alpha_options=True)
_NEVER = Sources(active=None)


def machine(
    *cpus: int, gib: int = 0, huge_2mi: int = 0, threads: int = 1, sockets: int | None = None
) -> Machine:
    """Nodes with so many CPUs each, numbered on; siblings follow each other."""
    first = 0
    nodes = []
    for node, count in enumerate(cpus):
        cores = tuple(
            Core(id=c, socket_id=node % (sockets or 1), threads=tuple(range(c, c + threads)))
            for c in range(first, first + count, threads)
        )
        first += count
        pools = (HugePages(page_size_kib=2048, count=huge_2mi),) if huge_2mi else ()
        memory = gib * GI + huge_2mi * 2 * MI
        nodes.append(NumaNode(id=node, memory_bytes=memory, hugepages=pools, cores=cores))
    return Machine(numa_nodes=tuple(nodes))


def gpus(resource: str, *per_node: int) -> StaticResource:
    """So many devices on each node."""
    return StaticResource(
        resource=resource,
        devices=tuple(
            StaticDevice(id=DeviceId(f"{node}-{number}"), numa_nodes=(node,))
            for node, count in enumerate(per_node)
            for number in range(count)
        ),
    )


def container(name: str = "app", *, kind: str = "app", **amounts: str | int) -> Container:
    """Equal requests and limits; `gpu`, `nic` and `hugepages_2Mi` stand for the resources."""
    names = {"gpu": GPU, "nic": NIC, "hugepages_2Mi": "hugepages-2Mi"}
    listed = {
        names.get(key, key): Quantity.parse(str(value))
        for key, value in amounts.items()
        if value not in {0, "0"}
    }
    listed.setdefault("memory", Quantity.parse("1Mi"))
    listed.setdefault("cpu", Quantity.parse("100m"))
    return Container(
        name=name,
        resources=Resources(requests=listed, limits=listed),
        is_init=kind != "app",
        restartable=kind == "sidecar",
    )


def pod(uid: str, *containers: Container) -> Pod:
    """A Guaranteed pod."""
    return Pod(
        uid=PodUid(uid),
        name=uid,
        init_containers=tuple(c for c in containers if c.is_init),
        containers=tuple(c for c in containers if not c.is_init),
    )


def with_requests(of: Pod, name: str, amounts: Mapping[str, Quantity]) -> Pod:
    """The same pod with other amounts in one container."""

    def changed(one: Container) -> Container:
        if one.name != name:
            return one
        listed = {**one.resources.requests, **amounts}
        return replace(one, resources=Resources(requests=listed, limits=listed))

    return replace(
        of,
        init_containers=tuple(map(changed, of.init_containers)),
        containers=tuple(map(changed, of.containers)),
    )


@dataclass
class Notes:
    """The engines of a node as the providers of one admission."""

    engines: tuple[Engine[Any], ...]
    states: list[Any]
    allocate_calls: list[pb.AllocateCall] = field(default_factory=list)
    plugin_calls: list[pb.PluginCall] = field(default_factory=list)
    facts_asked: int = 0

    async def topology_hints(self, pod: Pod, container: Container) -> tuple[ProviderAnswer, ...]:
        return self._hints(lambda e, s: e.topology_hints(s, pod, container, _NEVER))

    async def pod_topology_hints(self, pod: Pod) -> tuple[ProviderAnswer, ...]:
        return self._hints(lambda e, s: e.pod_topology_hints(s, pod, _NEVER))

    async def amounts(self, pod: Pod, container: Container | None) -> tuple[ResourceFacts, ...]:
        return tuple(
            fact
            for engine, state in zip(self.engines, self.states, strict=True)
            for fact in engine.facts(state, pod, container)
        )

    async def allocate(
        self, pod: Pod, container: Container, affinity: TopologyHint, last: bool
    ) -> AllocationFailure | None:
        for place, engine in enumerate(self.engines):
            outcome = await engine.allocate(self.states[place], pod, container, affinity, _NEVER)
            if outcome.failure is None and last:
                calls = outcome.plugin_calls
                sealed = await engine.seal(outcome.state, pod)
                outcome = replace(sealed, plugin_calls=calls + sealed.plugin_calls)
            self.states[place] = outcome.state
            error = outcome.failure.message if outcome.failure else ""
            self.plugin_calls.extend(map(call_to_message, outcome.plugin_calls))
            self.allocate_calls.append(
                pb.AllocateCall(provider=engine.name, container=container.name, error=error)
            )
            if outcome.failure is not None:
                return outcome.failure
        return None

    async def allocate_pod(self, *_: object, **__: object) -> AllocationFailure | None:
        raise AssertionError("no test manages a pod as a whole")

    async def facts(self, pod: Pod, container: Container | None) -> list[pb.ResourceFacts]:
        self.facts_asked += 1
        return [
            message
            for engine, state in zip(self.engines, self.states, strict=True)
            for message in facts_to_messages(engine.name, engine.facts(state, pod, container))
        ]

    def _hints(self, ask: Callable[[Engine[Any], Any], Any]) -> tuple[ProviderAnswer, ...]:
        answers = []
        for place, engine in enumerate(self.engines):
            hinted = ask(engine, self.states[place])
            self.states[place] = hinted.state
            answers.append(ProviderAnswer(engine.name, hinted.hints))
        return tuple(answers)


@dataclass(frozen=True)
class Explained:
    """What came of one admission."""

    result: ScopeResult
    explanation: pb.Explanation
    notes: Notes

    @property
    def obstacle(self) -> pb.Obstacle:
        (obstacle,) = self.explanation.obstacles
        return obstacle


class Node:
    """A node; `admit` decides and keeps what was admitted, `ask` keeps nothing."""

    def __init__(
        self,
        where: Machine,
        policy: str,
        *,
        scope: str = "container",
        reserved: str = "",
        cpu_options: Iterable[str] = (),
        cpu: str = "static",
        memory: str = "None",
        devices: Iterable[StaticResource] = (),
        placement: Placement = KUBELET_PLACEMENT,
    ) -> None:
        self.machine = where
        self.gates = GATES
        self.topology = topology = TopologySettings(policy=policy, scope=scope)
        devices = tuple(devices)
        self.decider = build_policy(topology, where, GATES, placement=placement)
        self.engines: tuple[Engine[Any], ...] = (
            build_device(
                static_inventory(devices),
                where,
                GATES,
                StaticPlugins(devices),
                DeviceStrategies(allocate_in_place=True),
            ),
            build_cpu(
                CpuSettings(
                    policy=cpu,
                    policy_options=dict.fromkeys(cpu_options, "true") if cpu == "static" else {},
                    reserved_cpus=reserved,
                    reserved_milli_cpu=0 if not reserved else None,
                ),
                topology,
                where,
                GATES,
                cpu_strategies.SAFE,
            ),
            memory_engine.build_engine(
                _memory_settings(memory, where), where, GATES, memory_engine.SAFE
            ),
        )
        self.states: list[Any] = [engine.start(None).state for engine in self.engines]

    def admit(
        self, which: Pod, level: pb.ExplainLevel.ValueType = pb.EXPLAIN_LEVEL_FULL
    ) -> Explained:
        explained = self.ask(which, level)
        if explained.result.admitted:
            self.states = explained.notes.states
        return explained

    def ask(
        self, which: Pod, level: pb.ExplainLevel.ValueType = pb.EXPLAIN_LEVEL_FULL
    ) -> Explained:
        notes = Notes(self.engines, list(self.states))
        explainer = Explainer(self.decider.policy, self.decider.numa, self.decider.scope.name)

        async def decided() -> Explained:
            result = await self.decider.scope.admit(which, notes)
            return Explained(result, await explainer(which, result, notes, level), notes)

        return asyncio.run(decided())

    def hold(self, uid: str, cpus: int, *nodes: int, memory: str = "1Mi", huge: str = "0") -> None:
        """Let a pod hold something on given nodes, whatever the policy would say."""
        which = pod(uid, container(cpu=cpus, memory=memory, hugepages_2Mi=huge))
        notes = Notes(self.engines, list(self.states))
        mask = TopologyHint(_mask(nodes), True)
        failure = asyncio.run(notes.allocate(which, which.containers[0], mask, True))
        assert failure is None
        self.states = notes.states


def _mask(nodes: Iterable[int]) -> Any:
    return sum(1 << node for node in nodes)


def _memory_settings(policy: str, where: Machine) -> MemorySettings:
    if policy == "None":
        return MemorySettings()
    each = Quantity.parse("100Mi")
    total = Quantity.parse("0")
    for _ in where.numa_nodes:
        total = total + each
    return MemorySettings(
        policy=policy,
        reserved_memory=tuple(
            ReservedMemory(numa_node=NumaId(node), limits={"memory": each})
            for node in where.node_ids()
        ),
        node_allocatable_reservation={"memory": total},
    )

"""Small machines, pods and engines that the tests of the CPU provider share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from numalign.cpu.engine import CpuEngine, build_engine
from numalign.cpu.state import CpuState
from numalign.cpu.strategies import KUBELET, CpuStrategies
from numalign.model.feature_gates import FeatureGates
from numalign.model.hint import NO_HINT, ProviderHints, TopologyHint
from numalign.model.ids import PodUid
from numalign.model.machine import Core, Machine, NumaNode
from numalign.model.numa_mask import mask_of
from numalign.model.pod import Container, Pod, Resources
from numalign.model.quantity import Quantity
from numalign.model.settings import KUBELET_CPUS, CpuSettings, CpuSwitches, TopologySettings
from numalign.provider.engine import Allocated, Sources

GATES = FeatureGates(cpu_manager_policy_alpha_options=True)
PLRM = FeatureGates(cpu_manager_policy_alpha_options=True, pod_level_resource_managers=True)
NEVER = Sources(active=None)


def machine(nodes: Mapping[int, Sequence[Core]], **counts: int) -> Machine:
    return Machine(
        numa_nodes=tuple(NumaNode(id=node, cores=tuple(cores)) for node, cores in nodes.items()),
        **counts,
    )


def core(*threads: int, socket: int = 0, uncore: int | None = None) -> Core:
    return Core(id=threads[0], socket_id=socket, threads=threads, uncore_cache_id=uncore)


def smt(cores: range, apart: int, *, socket: int = 0, uncore: int | None = None) -> list[Core]:
    """Two-thread cores {c, c + apart}."""
    return [core(c, c + apart, socket=socket, uncore=uncore) for c in cores]


def single(cpus: range, *, socket: int = 0) -> list[Core]:
    """One-thread cores."""
    return [core(c, socket=socket) for c in cpus]


T8 = machine({0: smt(range(4), 4)})
T16 = machine({0: smt(range(4), 8), 1: smt(range(4, 8), 8, socket=1)})
U16 = machine({0: smt(range(4), 8, uncore=0) + smt(range(4, 8), 8, uncore=1)})
N8 = machine({i: single(range(2 * i, 2 * i + 2), socket=i // 4) for i in range(8)})
TWO_OF_4 = machine({0: single(range(4)), 1: single(range(4, 8), socket=1)})
TWO_OF_8 = machine({0: single(range(8)), 1: single(range(8, 16), socket=1)})


def engine(
    where: Machine,
    reserved: str = "0",
    *options: str,
    strategies: CpuStrategies = KUBELET,
    gates: FeatureGates = GATES,
    topology_policy: str = "restricted",
    switches: CpuSwitches = KUBELET_CPUS,
    **settings: Any,
) -> CpuEngine:
    return build_engine(
        CpuSettings(
            policy=settings.pop("policy", "static"),
            policy_options=dict.fromkeys(options, "true"),
            reserved_cpus=reserved,
            **settings,
        ),
        TopologySettings(policy=topology_policy),
        where,
        gates,
        strategies,
        state_file="/state",
        switches=switches,
    )


def container(name: str, cpu: str | None, **kind: bool) -> Container:
    amounts = {"memory": Quantity.parse("1Gi")}
    if cpu is not None:
        amounts["cpu"] = Quantity.parse(cpu)
    return Container(name=name, resources=Resources(requests=amounts, limits=amounts), **kind)


def pod(
    uid: str,
    apps: Mapping[str, str | None],
    init: Mapping[str, str | None] | None = None,
    sidecars: frozenset[str] = frozenset(),
    pod_cpu: str | None = None,
) -> Pod:
    """A Guaranteed pod with cpu by container, and at the pod level if `pod_cpu` is given."""
    section = None
    if pod_cpu is not None:
        amounts = {"cpu": Quantity.parse(pod_cpu), "memory": Quantity.parse("8Gi")}
        section = Resources(requests=amounts, limits=amounts)
    return Pod(
        uid=PodUid(uid),
        init_containers=tuple(
            container(name, cpu, is_init=True, restartable=name in sidecars)
            for name, cpu in (init or {}).items()
        ),
        containers=tuple(container(name, cpu) for name, cpu in apps.items()),
        resources=section,
        status_qos_class="Guaranteed",
    )


def hint(*nodes: int, preferred: bool = True) -> TopologyHint:
    return TopologyHint(mask_of(nodes), preferred)


def allocate(
    by: CpuEngine,
    state: CpuState,
    which: Pod,
    name: str,
    affinity: TopologyHint = NO_HINT,
    sources: Sources = NEVER,
) -> Allocated[CpuState]:
    return asyncio.run(by.allocate(state, which, which.container(name), affinity, sources))


def allocate_whole(
    by: CpuEngine, state: CpuState, which: Pod, affinity: TopologyHint = NO_HINT
) -> Allocated[CpuState]:
    return asyncio.run(by.allocate_pod(state, which, affinity, NEVER))


def place(by: CpuEngine, state: CpuState, which: Pod, affinity: TopologyHint = NO_HINT) -> CpuState:
    """Allocate every container in turn; all must succeed."""
    for each in which.all_containers():
        outcome = allocate(by, state, which, each.name, affinity)
        assert outcome.failure is None
        state = outcome.state
    return state


def hints(by: CpuEngine, state: CpuState, which: Pod, name: str | None = None) -> ProviderHints:
    if name is None:
        return by.pod_topology_hints(state, which, NEVER).hints
    return by.topology_hints(state, which, which.container(name), NEVER).hints


def held(state: CpuState, uid: str) -> dict[str, str]:
    """What each container of the pod holds, as text."""
    return {c: str(cpus) for c, cpus in state.assignments.get(PodUid(uid), {}).items()}

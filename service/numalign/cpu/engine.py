"""The CPU provider's deciding part, as ledger and servicer see it.

It puts the policy, the clean-up before each decision and the way to start together; the
rules are in the modules it calls.
"""

from __future__ import annotations

from typing import Protocol

from numalign.cpu import state as cpu_state
from numalign.cpu.construction import check_none, cpu_topology, static_setup, unknown_policy
from numalign.cpu.metrics import PoolNumbers, pool_numbers
from numalign.cpu.policy_none import NonePolicy
from numalign.cpu.policy_static import StaticPolicy
from numalign.cpu.removal import release_pod, remove_container, remove_stale
from numalign.cpu.restore import restore
from numalign.cpu.start_rules import StartRules
from numalign.cpu.state import CpuState
from numalign.cpu.strategies import CpuStrategies
from numalign.cpu.topology import CpuTopology
from numalign.model.cpu_set import NO_CPUS, CpuSet
from numalign.model.feature_gates import FeatureGates
from numalign.model.hint import NO_HINT, ProviderHints, TopologyHint
from numalign.model.ids import PodUid
from numalign.model.machine import Machine
from numalign.model.numa_mask import NumaMask
from numalign.model.pod import Container, Pod
from numalign.model.settings import KUBELET_CPUS, CpuSettings, CpuSwitches, TopologySettings
from numalign.provider.engine import (
    NO_SOURCES,
    Allocated,
    Hinted,
    Lost,
    Preparation,
    Recorded,
    Restored,
    Sources,
    Started,
)
from numalign.provider.values import Holding, PodHolding, ResourceFacts


class CpuPolicy(Protocol):
    """What differs between `none` and `static`."""

    name: str
    resources: tuple[str, ...]

    def container_hints(self, state: CpuState, pod: Pod, container: Container) -> ProviderHints:
        """Hints for one container."""

    def pod_hints(self, state: CpuState, pod: Pod) -> ProviderHints:
        """Hints for the pod as a whole."""

    def allocate(
        self, state: CpuState, pod: Pod, container: Container, affinity: NumaMask | None
    ) -> Allocated[CpuState]:
        """Give one container its CPUs."""

    def allocate_pod(
        self, state: CpuState, pod: Pod, affinity: NumaMask | None
    ) -> Allocated[CpuState]:
        """Give a pod with resources of its own its CPUs."""

    def missing(self, state: CpuState, pod: Pod, finished: frozenset[str]) -> tuple[Lost, ...]:
        """Exclusive CPUs that the pod asks for and does not hold."""

    def facts(
        self, state: CpuState, pod: Pod, container: Container | None
    ) -> tuple[ResourceFacts, ...]:
        """What stands behind the hints."""


class CpuEngine:
    """An `Engine` over `CpuState`; see `numalign.provider.engine` for each call's contract.

    `all_cpus` are the CPUs of the machine, `reserved` those never given out exclusively and
    `allocatable` the ones reported as allocatable (CPU-21).
    """

    name = "cpu"

    def __init__(
        self,
        policy: CpuPolicy,
        topology: CpuTopology,
        rules: StartRules,
        strategies: CpuStrategies,
    ) -> None:
        self.policy = policy
        self.topology = topology
        self.all_cpus = topology.all_cpus
        self.reserved = rules.reserved
        self.allocatable = NO_CPUS if policy.name == "none" else self.all_cpus - rules.reserved
        self._rules = rules
        self._strategies = strategies
        self._entries = cpu_state.entry_json()

    def resources(self) -> tuple[str, ...]:
        """`cpu` under the static policy, nothing under `none`."""
        return self.policy.resources

    def start(self, stored: bytes | None) -> Started[CpuState]:
        """The state to start with (CPU-28..CPU-33, or what still fits).

        Raises StartError with the kubelet's text, or StateError for unreadable bytes,
        depending on the strategy.
        """
        return self._strategies.start_check(stored, self._rules)

    def restore(self, state: CpuState, recorded: Recorded) -> Restored[CpuState]:
        """Give a pod its recorded CPUs back, as far as they are free."""
        return restore(state, recorded, self._rules)

    def missing(self, state: CpuState, pod: Pod, finished: frozenset[str]) -> tuple[Lost, ...]:
        """Exclusive CPUs that the pod asks for and does not hold."""
        return self.policy.missing(state, pod, finished)

    def encode(self, state: CpuState) -> bytes:
        """Default set, assignments and pod sets as JSON; what can be reused is not kept."""
        return cpu_state.encode(
            state, self._rules.policy, pod_sets=self._rules.pod_sets, entries=self._entries
        )

    def topology_hints(
        self, state: CpuState, pod: Pod, container: Container, sources: Sources
    ) -> Hinted[CpuState]:
        """Hints for one container, after a clean-up (CPU-38, CPU-39)."""
        state = self.remove_stale(state, sources)
        return Hinted(state, self.policy.container_hints(state, pod, container))

    def pod_topology_hints(self, state: CpuState, pod: Pod, sources: Sources) -> Hinted[CpuState]:
        """Hints for the pod, after a clean-up (CPU-38, CPU-40)."""
        state = self.remove_stale(state, sources)
        return Hinted(state, self.policy.pod_hints(state, pod))

    async def allocate(
        self,
        state: CpuState,
        pod: Pod,
        container: Container,
        affinity: TopologyHint,
        sources: Sources,
        *,
        dry_run: bool = False,  # noqa: ARG002 - all of it can be undone
    ) -> Allocated[CpuState]:
        """Exclusive CPUs for one container, after a clean-up (CPU-44)."""
        state = self.remove_stale(state, sources)
        return self.policy.allocate(state, pod, container, affinity.mask)

    async def allocate_pod(
        self, state: CpuState, pod: Pod, affinity: TopologyHint, sources: Sources
    ) -> Allocated[CpuState]:
        """CPUs for a pod with resources of its own, after a clean-up (CPU-75)."""
        state = self.remove_stale(state, sources)
        return self.policy.allocate_pod(state, pod, affinity.mask)

    async def seal(
        self,
        state: CpuState,
        pod: Pod,  # noqa: ARG002 - the protocol's call
    ) -> Allocated[CpuState]:
        """Nothing: CPUs can always be given back."""
        return Allocated(state)

    def release(self, state: CpuState, pod_uid: PodUid) -> CpuState:
        """Give back everything the pod holds, each CPU once."""
        return release_pod(state, pod_uid)

    def remove_container(self, state: CpuState, pod_uid: PodUid, container: str) -> CpuState:
        """Give back what one container holds (CPU-69)."""
        return remove_container(state, pod_uid, container, pod_sets=self._rules.pod_sets)

    def add_container(
        self,
        state: CpuState,
        pod: Pod,  # noqa: ARG002 - the protocol's call
        container: Container,  # noqa: ARG002 - as above
    ) -> CpuState:
        """Nothing: CPUs of finished init containers stay with the pod (CPU-67, CPU-71)."""
        return state

    def remove_stale(self, state: CpuState, sources: Sources) -> CpuState:
        """Give back what containers hold that are not active (CPU-72)."""
        return remove_stale(state, sources, pod_sets=self._rules.pod_sets)

    def pods(self, state: CpuState) -> frozenset[PodUid]:
        """The pods that hold exclusive CPUs."""
        return frozenset(state.assignments) | frozenset(state.pod_sets)

    def shared_cpus(self, state: CpuState) -> CpuSet | None:
        """The shared set; empty under `none` (CPU-31)."""
        return state.default

    def holdings(self, state: CpuState, pod_uid: PodUid) -> tuple[Holding, ...]:
        """The exclusive CPUs of each container of the pod (CPU-86)."""
        containers = state.assignments.get(pod_uid, {})
        return tuple(Holding(container=c, cpus=containers[c]) for c in sorted(containers))

    def pod_holding(self, state: CpuState, pod_uid: PodUid) -> PodHolding:
        """The CPUs of the pod as a whole, if it has resources of its own."""
        return PodHolding(cpus=state.pod_sets.get(pod_uid, NO_CPUS))

    async def prepare_container(
        self,
        state: CpuState,
        pod: Pod,
        container: Container,
        *,
        affinity: TopologyHint = NO_HINT,  # noqa: ARG002 - everything was given at admission
        sources: Sources = NO_SOURCES,  # noqa: ARG002 - as above
    ) -> tuple[CpuState, Preparation]:
        """The container's CPUs, else the shared ones; nothing to apply if empty (CPU-82)."""
        cpus = state.cpus_of(pod.uid, container.name)
        return state, Preparation(cpus=cpus or None)

    def facts(
        self, state: CpuState, pod: Pod, container: Container | None
    ) -> tuple[ResourceFacts, ...]:
        """Requested CPUs, and capacity, reservation, free CPUs and holders by NUMA node."""
        return self.policy.facts(state, pod, container)

    def pool_numbers(self, state: CpuState) -> PoolNumbers:
        """The gauges for `state`."""
        return pool_numbers(state, self.topology, self.reserved)


def build_engine(
    settings: CpuSettings,
    topology: TopologySettings,
    machine: Machine,
    gates: FeatureGates,
    strategies: CpuStrategies,
    *,
    state_file: str = "cpu_manager_state",
    switches: CpuSwitches = KUBELET_CPUS,
) -> CpuEngine:
    """The engine for a machine and its settings; `state_file` is named in messages.

    `switches` take it beyond the kubelet's placement.

    Raises StartError of stage `cpu_manager` with the kubelet's text (CPU-1..CPU-21), and
    ConfigError for a reserved list that is no CPU list.
    """
    cpus = cpu_topology(machine)
    if settings.policy == "none":
        check_none(settings)
        rules = StartRules(
            policy="none",
            managed=NO_CPUS,
            reserved=NO_CPUS,
            strict=False,
            pod_sets=gates.pod_level_resource_managers,
            state_file=state_file,
        )
        return CpuEngine(NonePolicy(), cpus, rules, strategies)
    if settings.policy != "static":
        raise unknown_policy(settings.policy)
    setup = static_setup(settings, topology.policy, cpus, gates, strategies.sizes, switches)
    reserved, strict = setup.reservation.cpus, setup.options.strict_cpu_reservation
    rules = StartRules(
        policy="static",
        managed=cpus.all_cpus - reserved if strict else cpus.all_cpus,
        reserved=reserved,
        strict=strict,
        pod_sets=gates.pod_level_resource_managers,
        state_file=state_file,
    )
    return CpuEngine(StaticPolicy(setup), cpus, rules, strategies)

"""The memory engine: the deciding part of the memory provider, behind the engine protocol.

It is built once from settings, machine and gates; everything it answers afterwards follows
from the state it is given. Clean-up of stale records comes first in each hint and allocate
call (MEM-23, MEM-31), whatever the policy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from numalign.errors import StartError
from numalign.memory import mending, policy_none, policy_static, removal, reserved, start_check
from numalign.memory import state as states
from numalign.memory.eligibility import PodLevel, pod_level
from numalign.memory.machine_state import (
    HUGE_PAGES_PREFIX,
    MEMORY,
    MachineState,
    allocatable_blocks,
    default_machine_state,
)
from numalign.memory.missing import missing_memory
from numalign.memory.policy import MemoryPolicy
from numalign.memory.policy_kernel_pages import KernelCheck, KernelPagesPolicy
from numalign.memory.policy_none import NonePolicy
from numalign.memory.policy_static import StaticPolicy
from numalign.memory.rebase import rebase
from numalign.memory.restore import restore
from numalign.memory.start_check import StartContext
from numalign.memory.state import MemoryState
from numalign.model.cpu_set import CpuSet
from numalign.model.feature_gates import FeatureGates
from numalign.model.hint import NO_HINT, TopologyHint
from numalign.model.ids import PodUid
from numalign.model.machine import Machine
from numalign.model.pod import Container, Pod
from numalign.model.quoting import quoted
from numalign.model.settings import MemorySettings
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
from numalign.provider.values import Holding, MemoryBlock, PodHolding, ResourceFacts

_POLICY = "memoryManagerPolicy"

StartStrategy = Callable[[bytes | None, StartContext], Started[MemoryState]]
GivingBack = Callable[[MemoryState, MemoryState, MachineState], MemoryState]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStrategies:
    """What a compatibility mode chooses. `directory` appears in the kubelet's texts only."""

    start: StartStrategy
    given_back: GivingBack
    directory: str = "/var/lib/kubelet"


KUBELET = MemoryStrategies(start=start_check.refuse, given_back=mending.leave)
"""Refuse to start over books that are not what the machine leads to, and leave torn groups."""

SAFE = MemoryStrategies(start=rebase, given_back=mending.mend)
"""Put the stored blocks on the machine as it is now, never refuse, and mend torn groups."""


class MemoryEngine:
    """Implements `numalign.provider.engine.Engine[MemoryState]`; built by `build_engine`.

    `allocatable` is the list that the pod-resources service shows; it never changes (MEM-57).
    """

    name = "memory"

    def __init__(
        self,
        policy: MemoryPolicy,
        default: MachineState,
        gates: FeatureGates,
        strategies: MemoryStrategies,
    ) -> None:
        self._policy = policy
        self._gates = gates
        self._pod_entries = gates.pod_level_resources and gates.pod_level_resource_managers
        self._start = strategies.start
        self._given_back = strategies.given_back
        self._default = default
        self._entries = states.entry_json()
        self._context = StartContext(
            policy=policy.name,
            pod_entries=self._pod_entries,
            default=default,
            directory=strategies.directory,
        )
        self.allocatable: tuple[MemoryBlock, ...] = allocatable_blocks(default)

    @property
    def policy_name(self) -> str:
        """The policy in force: `None` or `Static`."""
        return self._policy.name

    def resources(self) -> tuple[str, ...]:
        """Memory and every huge page size; nothing under the None policy."""
        if self._policy.name == policy_none.NAME:
            return ()
        return (MEMORY, f"{HUGE_PAGES_PREFIX}*")

    def start(self, stored: bytes | None) -> Started[MemoryState]:
        """The state to start with; StartError where the start check refuses (MEM-73, MEM-74)."""
        return self._start(stored, self._context)

    def restore(self, state: MemoryState, recorded: Recorded) -> Restored[MemoryState]:
        """Give a pod its recorded blocks back, as far as there is room."""
        return restore(state, recorded, self._context)

    def missing(self, state: MemoryState, pod: Pod, finished: frozenset[str]) -> tuple[Lost, ...]:
        """Memory that the pod asks for and has not booked."""
        as_a_whole = pod_level(pod, self._gates) is PodLevel.MANAGED
        return missing_memory(state, pod, finished, self._policy, as_a_whole=as_a_whole)

    def encode(self, state: MemoryState) -> bytes:
        """The durable part of `state`, as JSON (MEM-76)."""
        return states.encode(
            state,
            policy=self._policy.name,
            pod_entries=self._pod_entries,
            entries=self._entries,
        )

    def topology_hints(
        self, state: MemoryState, pod: Pod, container: Container, sources: Sources
    ) -> Hinted[MemoryState]:
        """Hints for one container; MemoryFault where the kubelet would crash (MEM-29)."""
        state = self.remove_stale(state, sources)
        return Hinted(state, self._policy.topology_hints(state, pod, container))

    def pod_topology_hints(
        self, state: MemoryState, pod: Pod, sources: Sources
    ) -> Hinted[MemoryState]:
        """Hints for the pod; MemoryFault where the kubelet would crash (MEM-29)."""
        state = self.remove_stale(state, sources)
        return Hinted(state, self._policy.pod_topology_hints(state, pod))

    async def allocate(
        self,
        state: MemoryState,
        pod: Pod,
        container: Container,
        affinity: TopologyHint,
        sources: Sources,
        *,
        dry_run: bool = False,  # noqa: ARG002 - all of it can be undone
    ) -> Allocated[MemoryState]:
        """Book what one container asks for (MEM-31)."""
        state = self.remove_stale(state, sources)
        return self._policy.allocate(state, pod, container, affinity)

    async def allocate_pod(
        self, state: MemoryState, pod: Pod, affinity: TopologyHint, sources: Sources
    ) -> Allocated[MemoryState]:
        """Book what the pod asks for as a whole (MEM-58)."""
        state = self.remove_stale(state, sources)
        return self._policy.allocate_pod(state, pod, affinity)

    async def seal(self, state: MemoryState, pod: Pod) -> Allocated[MemoryState]:  # noqa: ARG002 - the protocol's signature
        """Nothing here is beyond undoing."""
        return Allocated(state)

    def release(self, state: MemoryState, pod_uid: PodUid) -> MemoryState:
        """Give back everything the pod holds, each byte once."""
        left = removal.release_pod(state, pod_uid)
        return self._given_back(state, left, self._default)

    def remove_container(self, state: MemoryState, pod_uid: PodUid, container: str) -> MemoryState:
        """Give back what one container holds (MEM-49, MEM-52)."""
        left = removal.remove_container(state, pod_uid, container)
        return self._given_back(state, left, self._default)

    def add_container(self, state: MemoryState, pod: Pod, container: Container) -> MemoryState:
        """`container` starts: give back what finished init containers held (MEM-51)."""
        left = removal.add_container(state, pod, container)
        return self._given_back(state, left, self._default)

    def remove_stale(self, state: MemoryState, sources: Sources) -> MemoryState:
        """Remove every container that is not active (MEM-54)."""
        if sources.active is None:
            return state
        left = removal.remove_stale(state, sources.active)
        return self._given_back(state, left, self._default)

    def pods(self, state: MemoryState) -> frozenset[PodUid]:
        """The pods that hold anything."""
        return frozenset(state.containers.keys() | state.pods.keys())

    def shared_cpus(self, state: MemoryState) -> CpuSet | None:  # noqa: ARG002 - the protocol's signature
        """None: this engine has no CPUs."""
        return None

    def holdings(self, state: MemoryState, pod_uid: PodUid) -> tuple[Holding, ...]:
        """The blocks of each container that has an entry, in order of name (MEM-57)."""
        entries = state.containers.get(pod_uid, {})
        return tuple(
            Holding(container=name, memory=blocks) for name, blocks in sorted(entries.items())
        )

    def pod_holding(self, state: MemoryState, pod_uid: PodUid) -> PodHolding:
        """The blocks that the pod booked as a whole."""
        return PodHolding(memory=state.pods.get(pod_uid, ()))

    async def prepare_container(
        self,
        state: MemoryState,
        pod: Pod,
        container: Container,
        *,
        affinity: TopologyHint = NO_HINT,  # noqa: ARG002 - everything was given at admission
        sources: Sources = NO_SOURCES,  # noqa: ARG002 - as above
    ) -> tuple[MemoryState, Preparation]:
        """The NUMA nodes for `cpuset.mems`; None leaves the setting alone (MEM-56)."""
        blocks = state.blocks(pod.uid, container.name) or ()
        nodes = sorted({node for block in blocks for node in block.numa_nodes})
        return state, Preparation(mems=tuple(nodes) or None)

    def facts(
        self, state: MemoryState, pod: Pod, container: Container | None
    ) -> tuple[ResourceFacts, ...]:
        """What stands behind the hints; nothing for pods whose memory is not placed."""
        request = self._policy.requested(pod, container)
        return self._policy.facts(state, pod, request) if request else ()


def build_engine(
    settings: MemorySettings,
    machine: Machine,
    gates: FeatureGates,
    strategies: MemoryStrategies,
    kernel: KernelCheck | None = None,
) -> MemoryEngine:
    """The engine for these settings on this machine (MEM-1, MEM-9..MEM-14).

    With `kernel`, the Static policy looks at the kernel's free huge pages as well.

    Raises StartError with the kubelet's text where the configuration is refused.
    """
    if settings.policy == policy_none.NAME:
        return MemoryEngine(NonePolicy(), {}, gates, strategies)
    if settings.policy == policy_static.NAME:
        tables = reserved.reserved_tables(settings, machine)
        default = default_machine_state(machine, tables)
        static = StaticPolicy(gates)
        policy = static if kernel is None else KernelPagesPolicy(static, kernel)
        return MemoryEngine(policy, default, gates, strategies)
    if settings.policy == "BestEffort":
        raise StartError(
            reserved.STAGE,
            'policy "BestEffort" is not available for platform "linux"',
            setting=_POLICY,
        )
    raise StartError(reserved.STAGE, f"unknown policy: {quoted(settings.policy)}", setting=_POLICY)

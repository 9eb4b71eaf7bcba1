"""The gauges of the CPU provider, in two ways: as things are, and as the kubelet counts.

The kubelet moves its gauges by what each call gave and took, so they drift away from the
books: CPUs that an init container leaves to the next are counted twice and given back once,
and a NUMA node keeps the number it had when its last exclusive CPU went (section 18, CPU-91).
Which way is taken is chosen at start.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

from numalign.cpu.engine import CpuEngine
from numalign.cpu.metrics import PoolNumbers
from numalign.cpu.state import CpuState
from numalign.model.cpu_set import NO_CPUS, CpuSet
from numalign.model.ids import PodUid
from numalign.model.pod import Container, Pod
from numalign.telemetry.metrics import Metrics

SHARED_POOL = "kubelet_cpu_manager_shared_pool_size_millicores"
EXCLUSIVE = "kubelet_cpu_manager_exclusive_cpu_allocation_count"
PER_NUMA = "kubelet_cpu_manager_allocation_per_numa"


class CpuGauges(Protocol):
    """Keeps the gauges of one CPU provider."""

    def started(self, state: CpuState) -> None:
        """The provider is about to serve `state`."""

    def took(
        self, before: CpuState, after: CpuState, pod: Pod, container: Container | None
    ) -> None:
        """A container, or (None) a pod, was given CPUs that it did not have in `before`."""

    def changed(self, state: CpuState) -> None:
        """The books changed; what was taken since the last change counts if it is in them."""


class ExactGauges:
    """Gauges that say how `state` stands, worked out only when somebody looks."""

    def __init__(self, engine: CpuEngine, metrics: Metrics) -> None:
        self._engine = engine
        self._shared = metrics.gauge(SHARED_POOL)
        self._exclusive = metrics.gauge(EXCLUSIVE)
        self._per_numa = metrics.gauge(PER_NUMA)
        self._state = CpuState()

    def started(self, state: CpuState) -> None:
        """Show `state`, every NUMA node included."""
        self._state = state
        self._shared.set_function(lambda: self._numbers().shared_millicores)
        self._exclusive.set_function(lambda: self._numbers().exclusive_count)
        for node in self._engine.topology.nodes:
            self._per_numa.labels(str(node)).set_function(partial(self._on_node, node))

    def took(
        self, before: CpuState, after: CpuState, pod: Pod, container: Container | None
    ) -> None:
        """Nothing yet: it is not in the books."""

    def changed(self, state: CpuState) -> None:
        """Show `state`."""
        self._state = state

    def _numbers(self) -> PoolNumbers:
        return self._engine.pool_numbers(self._state)

    def _on_node(self, node: int) -> float:
        return self._numbers().per_numa.get(node, 0)


@dataclass(frozen=True, slots=True)
class _Taken:
    cpus: CpuSet
    shared_before: int
    pod_uid: PodUid
    container: str | None

    def is_in(self, state: CpuState) -> bool:
        if self.container is None:
            return state.pod_sets.get(self.pod_uid) == self.cpus
        return state.assignment(self.pod_uid, self.container) == self.cpus


class DriftingGauges:
    """Gauges that move as the kubelet's do."""

    def __init__(self, engine: CpuEngine, metrics: Metrics) -> None:
        self._engine = engine
        self._shared = metrics.gauge(SHARED_POOL)
        self._exclusive = metrics.gauge(EXCLUSIVE)
        self._per_numa = metrics.gauge(PER_NUMA)
        self._state = CpuState()
        self._taken: list[_Taken] = []

    def started(self, state: CpuState) -> None:
        """Begin with what is in the books."""
        self._state = state
        numbers = self._engine.pool_numbers(state)
        self._shared.set(numbers.shared_millicores)
        self._exclusive.set(numbers.exclusive_count)
        self._show_nodes(state)

    def took(
        self, before: CpuState, after: CpuState, pod: Pod, container: Container | None
    ) -> None:
        """Note what was given, and how much of it came from the shared CPUs."""
        if container is None:
            cpus = after.pod_sets.get(pod.uid, NO_CPUS)
            reused = NO_CPUS
        else:
            cpus = after.assignment(pod.uid, container.name) or NO_CPUS
            reused = before.reusable.get(pod.uid, NO_CPUS)
        name = None if container is None else container.name
        self._taken.append(_Taken(cpus, len(cpus - reused), pod.uid, name))

    def changed(self, state: CpuState) -> None:
        """Move by what was taken and stayed, and by what came back to the shared CPUs."""
        before, self._state = self._state, state
        kept = [taken for taken in self._taken if taken.is_in(state)]
        self._taken.clear()
        released = len(state.default) - len(before.default) + sum(t.shared_before for t in kept)
        if not kept and not released:
            return
        moved = sum(len(taken.cpus) for taken in kept) - released
        self._exclusive.inc(moved)
        self._shared.inc(-1000 * moved)
        # A pod's nodes are shown before its containers have got their parts (CPU-91).
        whole = {taken.pod_uid for taken in kept if taken.container is None}
        self._show_nodes(_without(state, whole) if whole else state)

    def _show_nodes(self, state: CpuState) -> None:
        for node, count in self._engine.pool_numbers(state).per_numa.items():
            self._per_numa.labels(str(node)).set(count)


def _without(state: CpuState, pods: set[PodUid]) -> CpuState:
    return CpuState(
        default=state.default,
        assignments={pod: sets for pod, sets in state.assignments.items() if pod not in pods},
    )

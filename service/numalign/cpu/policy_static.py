"""The static policy: whole CPUs of Guaranteed pods are exclusive, everybody else shares.

Rules CPU-35..CPU-51 for containers; pods with resources of their own are in `pod_level`.
"""

from __future__ import annotations

from numalign.cpu import facts, pod_level
from numalign.cpu.accumulator import AssignmentError
from numalign.cpu.eligibility import (
    container_count,
    container_counts,
    empty_pool,
    is_left_alone,
    is_managed_pod,
    pod_count,
)
from numalign.cpu.hints import demand
from numalign.cpu.missing import missing_cpus
from numalign.cpu.reuse import reusable_of, with_reuse
from numalign.cpu.state import CpuState
from numalign.cpu.static_setup import StaticSetup
from numalign.model.cpu_set import NO_CPUS, CpuSet
from numalign.model.hint import ProviderHints
from numalign.model.numa_mask import NumaMask
from numalign.model.pod import Container, Pod
from numalign.provider.engine import Allocated, Lost
from numalign.provider.values import AllocationFailure, ResourceFacts

UNSATISFIABLE: ProviderHints = {"cpu": ()}


class StaticPolicy:
    """Decisions of the static policy; it holds nothing but how it was set up."""

    name = "static"
    resources: tuple[str, ...] = ("cpu",)

    def __init__(self, setup: StaticSetup) -> None:
        self.setup = setup

    def container_hints(self, state: CpuState, pod: Pod, container: Container) -> ProviderHints:
        """Hints for one container (CPU-39)."""
        gates = self.setup.gates
        count = container_count(pod, container, gates)
        if count == 0 or is_left_alone(pod, gates):
            return None
        assigned = state.assignment(pod.uid, container.name)
        if assigned is None:
            available = self.setup.available(state)
            return self._hints(available, reusable_of(state, pod.uid), count)
        if len(assigned) != count:
            return UNSATISFIABLE
        return self._hints(assigned, NO_CPUS, count)

    def pod_hints(self, state: CpuState, pod: Pod) -> ProviderHints:
        """Hints for the pod as a whole (CPU-40)."""
        gates = self.setup.gates
        count = pod_count(pod, gates)
        if count == 0 or is_left_alone(pod, gates):
            return None
        if is_managed_pod(pod, gates) and empty_pool(pod, count, gates):
            return UNSATISFIABLE
        held = NO_CPUS
        counts = container_counts(pod, gates)
        for container in pod.all_containers():
            assigned = state.assignment(pod.uid, container.name)
            if assigned is None:
                continue
            if len(assigned) != counts[container.name]:
                return UNSATISFIABLE
            held |= assigned
        if len(held) == count:
            return self._hints(held, NO_CPUS, count)
        reusable = reusable_of(state, pod.uid) | held
        return self._hints(self.setup.available(state), reusable, count)

    def allocate(
        self, state: CpuState, pod: Pod, container: Container, affinity: NumaMask | None
    ) -> Allocated[CpuState]:
        """Give one container its exclusive CPUs, or find that it has them (CPU-44)."""
        setup = self.setup
        count = container_count(pod, container, setup.gates)
        if count == 0 or is_left_alone(pod, setup.gates):
            return Allocated(state)
        # Before looking for what the container has: a running pod can fail here (CPU-44).
        reusable = reusable_of(state, pod.uid)
        failure = setup.smt_failure(state, count, reusable)
        if failure:
            return Allocated(state, failure)
        assigned = state.assignment(pod.uid, container.name)
        if assigned is not None:
            return Allocated(with_reuse(state, pod.uid, container, assigned))
        try:
            taken, cpus = setup.allocate_cpus(state, count, affinity, reusable)
        except AssignmentError as error:
            return Allocated(state, AllocationFailure(str(error)))
        failure = setup.shared_failure(state, taken)
        if failure:
            return Allocated(state, failure)
        taken = taken.with_assignment(pod.uid, container.name, cpus)
        return Allocated(with_reuse(taken, pod.uid, container, cpus))

    def allocate_pod(
        self, state: CpuState, pod: Pod, affinity: NumaMask | None
    ) -> Allocated[CpuState]:
        """Give a pod with resources of its own its CPUs (CPU-75)."""
        return pod_level.allocate_pod(self.setup, state, pod, affinity)

    def missing(self, state: CpuState, pod: Pod, finished: frozenset[str]) -> tuple[Lost, ...]:
        """Exclusive CPUs that the pod asks for and does not hold."""
        return missing_cpus(state, pod, finished, self.setup.gates)

    def facts(
        self, state: CpuState, pod: Pod, container: Container | None
    ) -> tuple[ResourceFacts, ...]:
        """What stands behind the hints."""
        return facts.cpu_facts(self.setup, state, pod, container)

    def _hints(self, available: CpuSet, reusable: CpuSet, count: int) -> ProviderHints:
        asked = demand(self.setup.topology, available, reusable, count)
        return {"cpu": self.setup.table.hints(asked)}

"""The safe start: what was stored is fitted to the configuration and the machine of now.

Nothing that still fits is lost: a pod keeps its CPUs over a changed policy option, a changed
reservation, and CPUs that came or went. Only an assignment with a CPU that is reserved now,
that is gone, or that another pod holds is dropped, and each of those is reported. A start is
refused only for bytes that are no state at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from numalign.cpu.start_rules import StartRules
from numalign.cpu.state import Checkpoint, CheckpointError, CpuState, decode, exclusive_cpus
from numalign.errors import StateError
from numalign.model.cpu_set import NO_CPUS, CpuSet, CpuSetSyntaxError
from numalign.model.ids import PodUid
from numalign.provider.engine import Started


def rebase(stored: bytes | None, rules: StartRules) -> Started[CpuState]:
    """The stored assignments that fit, over a shared set of everything else.

    Pods are looked at by UID, so of two pods with the same CPU the first keeps it. Reports
    say what changed. Raises StateError if `stored` cannot be read.
    """
    if stored is None:
        return Started(CpuState(default=rules.managed))
    try:
        checkpoint = decode(stored)
        fitting = _fitted(checkpoint, rules)
        stored_default = CpuSet.parse(checkpoint.default_cpu_set)
    except (CheckpointError, CpuSetSyntaxError) as error:
        raise StateError(f"the stored CPU state cannot be read: {error}") from error
    taken = exclusive_cpus(fitting.assignments)
    for cpus in fitting.pod_sets.values():
        taken |= cpus
    default = rules.managed - taken
    reports = list(fitting.reports)
    if checkpoint.policy_name != rules.policy:
        reports.insert(0, f"the CPU policy is {rules.policy}, it was {checkpoint.policy_name}")
    if default != stored_default:
        reports.append(f'the shared CPUs are "{default}", they were "{stored_default}"')
    state = CpuState(default=default, assignments=fitting.assignments, pod_sets=fitting.pod_sets)
    return Started(state, tuple(reports))


@dataclass(slots=True)
class _Fitting:
    """What fits so far."""

    assignments: dict[PodUid, Mapping[str, CpuSet]] = field(default_factory=dict)
    pod_sets: dict[PodUid, CpuSet] = field(default_factory=dict)
    reports: list[str] = field(default_factory=list)


def _fitted(checkpoint: Checkpoint, rules: StartRules) -> _Fitting:
    fitting = _Fitting()
    usable = rules.managed - rules.reserved
    stored_sets = checkpoint.pod_entries or {}
    others = NO_CPUS
    for pod in sorted({*checkpoint.entries, *stored_sets}):
        containers = {c: CpuSet.parse(s) for c, s in checkpoint.entries.get(pod, {}).items()}
        pod_set = CpuSet.parse(stored_sets[pod]) if pod in stored_sets else None
        holding = _Holding(pod, containers, pod_set)
        kept = holding.fitted(usable, others, rules)
        fitting.reports.extend(kept.reports)
        if kept.containers:
            fitting.assignments[pod] = kept.containers
        if kept.pod_set is not None:
            fitting.pod_sets[pod] = kept.pod_set
        others |= kept.cpus
    return fitting


@dataclass(frozen=True, slots=True)
class _Kept:
    containers: dict[str, CpuSet]
    pod_set: CpuSet | None
    reports: tuple[str, ...]

    @property
    def cpus(self) -> CpuSet:
        cpus = self.pod_set or NO_CPUS
        for held in self.containers.values():
            cpus |= held
        return cpus


@dataclass(frozen=True, slots=True)
class _Holding:
    """What one pod holds in the stored state."""

    pod: PodUid
    containers: dict[str, CpuSet]
    pod_set: CpuSet | None

    def fitted(self, usable: CpuSet, others: CpuSet, rules: StartRules) -> _Kept:
        """What the pod keeps, given the usable CPUs and those of the pods before it.

        A pod that holds a set as a whole keeps all of it or nothing: its containers share it.
        """
        if self.pod_set is not None and rules.pod_sets:
            problem = _problem(self.pod_set, usable, others, rules)
            if problem or not self.containers:
                why = problem or "no container uses it"
                return _Kept({}, None, tuple(self._dropped_with_set(why)))
        kept: dict[str, CpuSet] = {}
        reports = []
        for container, cpus in sorted(self.containers.items()):
            problem = _problem(cpus, usable, others, rules)
            if problem:
                reports.append(self._dropped(container, cpus, problem))
            else:
                kept[container] = cpus
        if self.pod_set is not None and not rules.pod_sets:
            reports.append(
                f'pod {self.pod}: its set of CPUs "{self.pod_set}" is not kept: '
                "pods hold no CPUs as a whole now"
            )
        pod_set = self.pod_set if rules.pod_sets and kept else None
        return _Kept(kept, pod_set, tuple(reports))

    def _dropped_with_set(self, why: str) -> Iterator[str]:
        yield f'pod {self.pod}: its set of CPUs "{self.pod_set}" is dropped: {why}'
        for container, cpus in sorted(self.containers.items()):
            yield self._dropped(container, cpus, "it is part of the pod's set")

    def _dropped(self, container: str, cpus: CpuSet, why: str) -> str:
        return f'pod {self.pod}, container {container}: CPUs "{cpus}" are dropped: {why}'


def _problem(cpus: CpuSet, usable: CpuSet, others: CpuSet, rules: StartRules) -> str:
    """Why `cpus` cannot be kept; empty if they can."""
    if rules.policy == "none":
        return "the policy none gives no exclusive CPUs"
    reserved = cpus & rules.reserved
    if reserved:
        return f'"{reserved}" reserved now'
    gone = cpus - usable
    if gone:
        return f'"{gone}" not on the machine'
    doubly = cpus & others
    if doubly:
        return f'"{doubly}" held by another pod'
    return ""

"""What a scope is: it admits one pod by asking the policy and the providers in the right order.

One file per scope; this one holds what they share: the result, and the notes taken on the
way to it. Rules TM-39, TM-45, TM-53.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from numalign.model.hint import TopologyHint
from numalign.model.pod import Container, Pod
from numalign.model.settings import NumaAllocationStrategy
from numalign.topology.allocation_strategy import AllocationOrder
from numalign.topology.numa_info import MissingDistance
from numalign.topology.policy import Policy
from numalign.topology.ports import ProviderAnswer, Providers
from numalign.topology.reasons import Rejection, unexpected_rejection


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRecord:
    """One merge: for which container (None: the whole pod), from what, and what came out.

    Not `proved`: whether another hint as wide was better could not be found out in time.
    `strategy` had a say in which of equally wide masks came out; `remote` resources come from
    other nodes, on purpose.
    """

    container: str | None
    answers: tuple[ProviderAnswer, ...]
    best: TopologyHint
    admitted: bool
    proved: bool = True
    strategy: NumaAllocationStrategy = NumaAllocationStrategy.NONE
    remote: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionCounts:
    """By how much the counters of TM-53 grow, the last two under the label of the scope.

    `errors`: `topology_manager_admission_errors_total`; `aligned` and `not_aligned`:
    `container_aligned_compute_resources_count` and `..._failure_count`.
    """

    errors: int = 0
    aligned: int = 0
    not_aligned: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeResult:
    """The outcome of one admission.

    `affinities` maps the container name to the hint stored for it; a refused pod's stay
    stored like its allocations, unless whoever asked undoes them (TM-45). `keeps_nothing`
    says that no trace of the admission may stay whatever the mode: there was no decision.
    `retry_after`: it was too early to decide; seconds after which to ask again.
    """

    admitted: bool
    reason: str = ""
    message: str = ""
    affinities: Mapping[str, TopologyHint] = field(default_factory=dict)
    merges: tuple[MergeRecord, ...] = ()
    counts: AdmissionCounts = field(default_factory=AdmissionCounts)
    keeps_nothing: bool = False
    retry_after: float | None = None

    @property
    def refused_by_policy(self) -> bool:
        """Whether it was the policy that refused, and no provider."""
        return not self.admitted and bool(self.merges) and not self.merges[-1].admitted

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence for each merge whose hint is not proved the best, or leaves some apart."""
        return (
            *(_unproved(record) for record in self.merges if not record.proved),
            *(_remote(record) for record in self.merges if record.remote),
        )


class Scope(Protocol):
    """A topology scope."""

    @property
    def name(self) -> str:
        """The scope's name in the configuration and in the metrics."""

    async def admit(self, pod: Pod, providers: Providers) -> ScopeResult:
        """Decide on `pod` and allocate for it; nothing is undone on refusal (TM-45).

        Raises whatever `providers` raise; then there is no decision.
        """


@dataclass(slots=True)
class Attempt:
    """The notes of one admission under way, from which its result is made.

    `order` None: no amounts are looked at.
    """

    policy: Policy
    order: AllocationOrder | None = None
    affinities: dict[str, TopologyHint] = field(default_factory=dict)
    merges: list[MergeRecord] = field(default_factory=list)
    aligned: int = 0

    async def judge(
        self, pod: Pod, container: Container | None, providers: Providers
    ) -> MergeRecord:
        """Have the policy decide on a container, or (None) the pod, and note it.

        Raises MissingDistance and Undecided, and whatever `providers` raise.
        """
        answers = await (
            providers.pod_topology_hints(pod)
            if container is None
            else providers.topology_hints(pod, container)
        )
        order = None
        if self.order is not None:
            order = self.order(await providers.amounts(pod, container))
        verdict = self.policy.decide([answer.hints for answer in answers], order)
        record = MergeRecord(
            container=None if container is None else container.name,
            answers=answers,
            best=verdict.best,
            admitted=verdict.admitted,
            proved=verdict.proved,
            remote=verdict.remote,
            strategy=NumaAllocationStrategy.NONE if self.order is None else self.order.strategy,
        )
        self.merges.append(record)
        return record

    def store(self, container: str, affinity: TopologyHint) -> None:
        """Note the hint stored for a container (TM-50)."""
        self.affinities[container] = affinity

    def count_aligned(self) -> None:
        """Note one success of a policy that guarantees alignment, no other (TM-38, TM-54)."""
        if self.policy.alignment_guaranteed:
            self.aligned += 1

    def admitted(self) -> ScopeResult:
        """The result of an admission that went through."""
        return ScopeResult(
            admitted=True,
            affinities=self.affinities,
            merges=tuple(self.merges),
            counts=AdmissionCounts(aligned=self.aligned),
        )

    def not_aligned(self, rejection: Rejection) -> ScopeResult:
        """The result where the policy did not admit."""
        return self._refused(rejection, not_aligned=int(self.policy.alignment_guaranteed))

    def not_allocated(self, rejection: Rejection) -> ScopeResult:
        """The result where a provider failed."""
        return self._refused(rejection)

    def undecidable(self, missing: MissingDistance) -> ScopeResult:
        """The result where the kubelet would crash over a distance that is not there (TM-10)."""
        return self._refused(unexpected_rejection(str(missing)), keeps_nothing=True)

    def _refused(
        self, rejection: Rejection, *, not_aligned: int = 0, keeps_nothing: bool = False
    ) -> ScopeResult:
        return ScopeResult(
            admitted=False,
            reason=rejection.reason,
            message=rejection.message,
            affinities={} if keeps_nothing else self.affinities,
            merges=tuple(self.merges),
            counts=AdmissionCounts(errors=1, aligned=self.aligned, not_aligned=not_aligned),
            keeps_nothing=keeps_nothing,
        )


def _remote(record: MergeRecord) -> str:
    names = ", ".join(record.remote)
    return f"for {_whose(record)} {names} may come from other NUMA nodes than CPUs and memory"


def _whose(record: MergeRecord) -> str:
    return "the pod" if record.container is None else f'container "{record.container}"'


def _unproved(record: MergeRecord) -> str:
    return (
        f"for {_whose(record)} a set of NUMA nodes was chosen without proof that no other of the "
        "same size is better: the search was ended"
    )

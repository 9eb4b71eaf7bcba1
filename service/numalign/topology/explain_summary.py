"""What was decided, as one readable paragraph, for an admission and for a refusal.

Separate from the obstacles of a refusal, which stand for themselves in an answer. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from numalign.model.settings import NumaAllocationStrategy
from numalign.topology.explain_merge import (
    MergeCause,
    MergeVerdict,
    ResourceView,
    explain_merge,
    mask_words,
)
from numalign.topology.explain_words import (
    holders_words,
    listed,
    masks_words,
    paragraph,
    without_subject,
)
from numalign.topology.explanation import Explanation, Obstacle
from numalign.topology.numa_info import NumaInfo
from numalign.topology.policy import Policy
from numalign.topology.scope import MergeRecord, ScopeResult

_MOST_CONTAINERS_NAMED = 3


def admission(
    result: ScopeResult, policy: Policy, numa: NumaInfo | None, scope: str
) -> Explanation:
    """The masks chosen for an admitted pod, and what each resource offered.

    `numa` is None where the policy does not align.
    """
    if numa is None or not result.merges:
        unaligned = "No alignment was asked for: each provider chose by itself"
        return Explanation(summary=paragraph([f"Admitted by policy {policy.name}", unaligned]))
    alike: dict[str, list[str | None]] = {}
    for record in result.merges:
        alike.setdefault(_outcome_words(record, policy, numa), []).append(record.container)
    sentences = [f"{_subject(names)} got {outcome}" for outcome, names in alike.items()]
    head = f"Admitted by policy {policy.name} in {scope} scope"
    more = "{} more sentences are left out."
    return Explanation(summary=paragraph([head, *sentences], more))


def rejection(result: ScopeResult, policy: Policy, scope: str, obstacle: Obstacle) -> Explanation:
    """The paragraph on a refusal that ran into `obstacle`.

    First why, then what would have fitted, and as far as there is room, who holds the rest.
    """
    head = f"Rejected ({result.reason}) by policy {policy.name}"
    if scope != policy.name:
        head += f" in {scope} scope"
    subject = f'container "{obstacle.container}"' if obstacle.container else "the pod"
    told = [f"{head}, {subject}: {obstacle.why}"]
    if obstacle.would_fit:
        told.append(f"What would have fitted: {obstacle.would_fit}")
    holders = [
        holders_words(one.facts)
        for one in obstacle.found
        if one.facts.resource in obstacle.resources
    ]
    return Explanation(
        summary=paragraph([*told, *holders], always=len(told)),
        obstacles=(obstacle,),
    )


def _subject(names: Sequence[str | None]) -> str:
    named = [f'"{name}"' for name in names if name is not None]
    if not named:
        return "The pod"
    if len(named) == 1:
        return f"Container {named[0]}"
    if len(named) > _MOST_CONTAINERS_NAMED:
        named[_MOST_CONTAINERS_NAMED:] = [f"{len(named) - _MOST_CONTAINERS_NAMED} more"]
    return f"Containers {listed(named)}"


def _outcome_words(record: MergeRecord, policy: Policy, numa: NumaInfo) -> str:
    """The mask that was chosen, and why."""
    verdict = explain_merge(record, policy, numa)
    got = mask_words(record.best.mask)
    if all(view.any_node for view in verdict.resources):
        return f"{got}: no resource minds where"
    if verdict.cause is not MergeCause.ALIGNED:
        return f"{got}, not preferred: {without_subject(verdict)}"
    offers = "; ".join(f"{view.resource} offered {_offered(view)}" for view in verdict.resources)
    return f"{got}, preferred: {_choice_words(record, verdict, numa)} ({offers})"


def _choice_words(record: MergeRecord, verdict: MergeVerdict, numa: NumaInfo) -> str:
    """Why this mask of those that all resources agree on."""
    rank = "the narrowest, then closest," if numa.distances else "the first of the narrowest"
    if record.strategy is not NumaAllocationStrategy.NONE:
        fullness = record.strategy.value.replace("-", " ")
        closest = " then closest," if numa.distances else ""
        rank = f"the narrowest,{closest} then {fullness},"
    if not all(view.complete for view in verdict.resources):
        return f"{rank} of the sets of NUMA nodes that all resources agree on"
    demanding = [frozenset(view.accepted) for view in verdict.resources if not view.any_node]
    common = frozenset.intersection(*demanding)
    if len(common) == 1:
        return "the only set of NUMA nodes that all resources agree on"
    return f"{rank} of {len(common)} sets of NUMA nodes that all resources agree on"


def _offered(view: ResourceView) -> str:
    return masks_words(view.accepted, any_node=view.any_node, complete=view.complete)

"""What was decided, as one readable paragraph, for an admission and for a refusal.

Separate from the obstacles of a refusal, which stand for themselves in an answer. Pure.
"""

from __future__ import annotations

from numalign.model.pod import Pod
from numalign.topology.explain_merge import MergeCause, MergeVerdict, explain_merge, mask_words
from numalign.topology.explain_words import holders_words, masks_words, paragraph
from numalign.topology.explanation import Explanation, Obstacle
from numalign.topology.numa_info import NumaInfo
from numalign.topology.policy import Policy
from numalign.topology.scope import MergeRecord, ScopeResult


def admission(
    pod: Pod, result: ScopeResult, policy: Policy, numa: NumaInfo | None, scope: str
) -> Explanation:
    """The masks chosen for an admitted pod, and what each resource offered."""
    if numa is None or not result.merges:
        count = len(pod.all_containers())
        containers = "the only container" if count == 1 else f"{count} containers"
        unaligned = f"No alignment was asked for: each provider chose by itself for {containers}"
        return Explanation(summary=paragraph([f"Admitted by policy {policy.name}", unaligned]))
    sentences = [_admitted_words(record, policy, numa) for record in result.merges]
    head = f"Admitted by policy {policy.name} in {scope} scope"
    return Explanation(
        summary=paragraph([head, *sentences], more="{} more containers were decided likewise.")
    )


def rejection(result: ScopeResult, policy: Policy, scope: str, obstacle: Obstacle) -> Explanation:
    """The paragraph on a refusal that ran into `obstacle`."""
    head = f"Rejected ({result.reason}) by policy {policy.name}"
    if scope != policy.name:
        head += f" in {scope} scope"
    subject = f'container "{obstacle.container}"' if obstacle.container else "the pod"
    would_fit = f"What would have fitted: {obstacle.would_fit}" if obstacle.would_fit else ""
    holders = [
        holders_words(one.facts)
        for one in obstacle.found
        if one.facts.resource in obstacle.resources
    ]
    return Explanation(
        summary=paragraph([f"{head}, {subject}: {obstacle.why}", would_fit, *holders]),
        obstacles=(obstacle,),
    )


def _admitted_words(record: MergeRecord, policy: Policy, numa: NumaInfo) -> str:
    verdict = explain_merge(record, policy, numa)
    subject = "The pod" if record.container is None else f'Container "{record.container}"'
    got = f"{subject} got {mask_words(record.best.mask)}"
    demanding = [view for view in verdict.resources if not view.any_node]
    if not demanding:
        return f"{got}: no resource minds where"
    offers = "; ".join(
        f"{view.resource} offered {masks_words(view.accepted, any_node=view.any_node)}"
        for view in verdict.resources
    )
    if verdict.cause is MergeCause.ALIGNED:
        return f"{got}, preferred: {_choice_words(verdict, numa)} ({offers})"
    return f"{got}, not preferred: {verdict.sentence}"


def _choice_words(verdict: MergeVerdict, numa: NumaInfo) -> str:
    """Why this mask of those that all resources agree on."""
    demanding = [frozenset(view.accepted) for view in verdict.resources if not view.any_node]
    common = frozenset.intersection(*demanding)
    if len(common) == 1:
        return "the only set of NUMA nodes that all resources agree on"
    rank = "the narrowest, then closest," if numa.distances else "the first of the narrowest"
    return f"{rank} of {len(common)} sets of NUMA nodes that all resources agree on"

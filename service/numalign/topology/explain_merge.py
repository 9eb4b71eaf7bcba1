"""Why a merge came out as it did: what each resource could live with, and where they clash.

The merge itself forgets who wanted what; this looks at the same answers again, one resource
at a time, and is only used where somebody wants to know. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from numalign.model.hint import HintList, TopologyHint
from numalign.model.numa_mask import NumaMask, narrowness, nodes_of
from numalign.topology.numa_info import MissingDistance, NumaInfo
from numalign.topology.policy import Policy
from numalign.topology.scope import MergeRecord

_MOST_MASKS_NAMED = 4
"""How many masks of one resource a sentence names before it counts the rest."""


class MergeCause(StrEnum):
    """What decided a merge, from the aligned to the hopeless."""

    ALIGNED = "aligned"
    """All resources that mind agree on a set of nodes."""
    NO_COMMON_MASK = "no-common-mask"
    """Each resource has sets of nodes that would do, but some have none in common."""
    NO_ACCEPTED_MASK = "no-accepted-mask"
    """Some resource fits, but on no set of nodes that the policy accepts."""
    NOWHERE = "nowhere"
    """Some resource fits on no set of nodes at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceView:
    """One resource's part in a merge.

    `accepted` holds the masks the policy accepts for it, narrowest first; with `any_node` it
    would do with any other as well. `best_alone` is the best hint were it the only resource,
    None where that turns on a distance that the machine does not report (TM-10).
    """

    provider: str
    resource: str
    accepted: tuple[NumaMask, ...]
    any_node: bool
    nowhere: bool
    best_alone: TopologyHint | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeVerdict:
    """Why a merge came out as it did, as values and as one sentence.

    `resources` are those that stated a preference. `clashing` names the ones to blame: under
    NO_COMMON_MASK a set that has no mask in common, but would without any one of them.
    """

    admitted: bool
    cause: MergeCause
    clashing: tuple[str, ...]
    resources: tuple[ResourceView, ...]
    sentence: str


def explain_merge(record: MergeRecord, policy: Policy, numa: NumaInfo) -> MergeVerdict:
    """Why `policy` decided on `record` as it did; `policy` is the one that decided."""
    views = tuple(
        _view(answer.provider, resource, hints, policy, numa)
        for answer in record.answers
        for resource, hints in (answer.hints or {}).items()
        if hints is not None
    )
    cause, blamed = _cause(views)
    return MergeVerdict(
        admitted=record.admitted,
        cause=cause,
        clashing=tuple(view.resource for view in blamed),
        resources=views,
        sentence=_sentence(record, policy, cause, blamed),
    )


def mask_words(mask: NumaMask | None) -> str:
    """A mask for people: `{0,2}`, or `any node` where there is no affinity."""
    if mask is None:
        return "any node"
    return "{" + ",".join(map(str, nodes_of(mask))) + "}"


def _view(
    provider: str, resource: str, hints: Iterable[TopologyHint], policy: Policy, numa: NumaInfo
) -> ResourceView:
    hint_list = tuple(hints)
    accepted = {hint.mask for hint in hint_list if policy.accepts(hint)}
    usable = {mask for mask in accepted if mask is not None and mask & numa.default_mask}
    return ResourceView(
        provider=provider,
        resource=resource,
        accepted=tuple(sorted(usable, key=narrowness)),
        any_node=None in accepted,
        nowhere=not hint_list,
        best_alone=_best_alone(resource, hint_list, policy),
    )


def _best_alone(resource: str, hints: HintList, policy: Policy) -> TopologyHint | None:
    alone: Mapping[str, HintList] = {resource: hints}
    try:
        return policy.decide([alone]).best
    except MissingDistance:
        # The merge of all resources did not need that distance, so its outcome stands.
        return None


def _cause(views: tuple[ResourceView, ...]) -> tuple[MergeCause, list[ResourceView]]:
    nowhere = [view for view in views if view.nowhere]
    if nowhere:
        return MergeCause.NOWHERE, nowhere
    unaccepted = [view for view in views if not view.accepted and not view.any_node]
    if unaccepted:
        return MergeCause.NO_ACCEPTED_MASK, unaccepted
    demanding = [view for view in views if not view.any_node]
    if _agree(demanding):
        return MergeCause.ALIGNED, []
    return MergeCause.NO_COMMON_MASK, _fewest_clashing(demanding)


def _agree(views: list[ResourceView]) -> bool:
    masks = [set(view.accepted) for view in views]
    return not masks or bool(set.intersection(*masks))


def _fewest_clashing(views: list[ResourceView]) -> list[ResourceView]:
    """`views` without those whose absence would leave the others clashing all the same."""
    kept = list(views)
    for view in views:
        without = [other for other in kept if other is not view]
        if not _agree(without):
            kept = without
    return kept


def _sentence(
    record: MergeRecord, policy: Policy, cause: MergeCause, blamed: list[ResourceView]
) -> str:
    subject = "the pod" if record.container is None else f'container "{record.container}"'
    merged = mask_words(record.best.mask)
    if cause is MergeCause.ALIGNED:
        return f"policy {policy.name} admits {subject}: all resources agree on {merged}"
    outcome = f"admits {subject} unaligned" if record.admitted else f"refuses {subject}"
    return f"policy {policy.name} {outcome}: {_obstacle(policy, cause, blamed)}"


def _obstacle(policy: Policy, cause: MergeCause, blamed: list[ResourceView]) -> str:
    names = _listed([view.resource for view in blamed])
    if cause is MergeCause.NOWHERE:
        return f"no set of NUMA nodes can give {names}"
    if cause is MergeCause.NO_COMMON_MASK:
        wishes = "; ".join(f"{view.resource} on {_choice(view.accepted)}" for view in blamed)
        return f"{names} have no set of NUMA nodes in common ({wishes})"
    if policy.alignment_guaranteed:
        return f"no NUMA node alone can give {names}"
    alone = _listed(
        [
            f"{view.resource} on {mask_words(view.best_alone.mask)}"
            for view in blamed
            if view.best_alone is not None
        ]
    )
    detail = f" (best that is left: {alone})" if alone else ""
    return f"no preferred set of NUMA nodes can give {names}{detail}"


def _choice(masks: tuple[NumaMask, ...]) -> str:
    named = [mask_words(mask) for mask in masks[:_MOST_MASKS_NAMED]]
    if len(masks) > _MOST_MASKS_NAMED:
        named.append(f"{len(masks) - _MOST_MASKS_NAMED} more")
    return " or ".join(named)


def _listed(words: list[str]) -> str:
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"

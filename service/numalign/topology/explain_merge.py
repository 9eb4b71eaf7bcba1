"""Why a merge came out as it did: what each resource could live with, and where they clash.

The merge itself forgets who wanted what; this looks at the same answers again, one resource
at a time, and is only used where somebody wants to know. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from numalign.errors import Undecided
from numalign.families.choices import Choices, preferred_choices
from numalign.families.expand import is_empty
from numalign.families.merge import merge_offers
from numalign.families.offers import offer_of
from numalign.families.preferred import preferred
from numalign.families.single_node import kept_hints
from numalign.families.work import OutOfWork, Work
from numalign.model.hint import FamilyList, HintList, TopologyHint
from numalign.model.numa_mask import MAX_NUMA_ID, NumaMask, narrowness, nodes_of
from numalign.topology.normalise import StatedList
from numalign.topology.numa_info import MissingDistance, NumaInfo, narrowest
from numalign.topology.policy import Policy
from numalign.topology.scope import MergeRecord

_MOST_MASKS_NAMED = 4
"""How many masks of one resource a sentence names before it counts the rest."""


_MOST_ACCEPTED = 64
"""How many accepted masks of a described list are looked for."""

_MOST_WORK = 1000
"""Steps for each question about described lists: an explanation must not hold up a decision."""

_ANY_NODE = (1 << (MAX_NUMA_ID + 1)) - 1


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
    would do with any other as well. Where there may be many, `accepted` has the first few, and
    `complete` says whether these are all. `stated` are its hints as they came.
    """

    provider: str
    resource: str
    accepted: tuple[NumaMask, ...]
    any_node: bool
    nowhere: bool
    complete: bool = True
    stated: HintList = ()


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
    cause, blamed = _cause(views, numa)
    return MergeVerdict(
        admitted=record.admitted,
        cause=cause,
        clashing=tuple(view.resource for view in blamed),
        resources=views,
        sentence=_sentence(record, policy, numa, cause, blamed),
    )


def mask_words(mask: NumaMask | None) -> str:
    """A mask for people: `{0,2}`, or `any node` where there is no affinity."""
    if mask is None:
        return "any node"
    return "{" + ",".join(map(str, nodes_of(mask))) + "}"


def _view(
    provider: str, resource: str, hints: StatedList, policy: Policy, numa: NumaInfo
) -> ResourceView:
    complete = True
    hint_list = hints if isinstance(hints, tuple) else ()
    if isinstance(hints, FamilyList):
        choices = accepted_choices(hints, policy)
        hint_list, complete = choices.hints, choices.complete
    accepted = {hint.mask for hint in hint_list if policy.accepts(hint)}
    usable = {mask for mask in accepted if mask is not None and mask & numa.default_mask}
    return ResourceView(
        provider=provider,
        resource=resource,
        accepted=tuple(sorted(usable, key=narrowness)),
        any_node=None in accepted,
        nowhere=not hints or (isinstance(hints, FamilyList) and is_empty(hints)),
        complete=complete,
        stated=hints,
    )


def _best_alone(view: ResourceView, policy: Policy, numa: NumaInfo) -> TopologyHint | None:
    """The best hint were it the only resource.

    None where that turns on a distance that the machine does not report (TM-10) or takes too long
    to find: the merge of all resources did not need that answer.
    """
    alone: Mapping[str, HintList] = {view.resource: view.stated}
    try:
        if not isinstance(view.stated, FamilyList):
            return policy.decide([alone]).best
        fitter = numa.closest if numa.distances else narrowest
        work = Work(_MOST_WORK)
        merged = merge_offers([offer_of(view.stated)], numa.default_mask, fitter, work)
    except (MissingDistance, Undecided):
        return None
    return merged.best if merged.proved else None


def accepted_choices(family: FamilyList, policy: Policy) -> Choices:
    """The first few hints of a described list that `policy` accepts; single nodes in full."""
    if not policy.alignment_guaranteed:
        return preferred_choices(family, _MOST_ACCEPTED)
    # Only single nodes can be accepted, and there are at most as many as a mask has places.
    return Choices(tuple(kept_hints(offer_of(family), _ANY_NODE)), complete=True)


def _cause(
    views: tuple[ResourceView, ...], numa: NumaInfo
) -> tuple[MergeCause, list[ResourceView]]:
    nowhere = [view for view in views if view.nowhere]
    if nowhere:
        return MergeCause.NOWHERE, nowhere
    unaccepted = [view for view in views if not view.accepted and not view.any_node]
    if unaccepted:
        return MergeCause.NO_ACCEPTED_MASK, unaccepted
    demanding = [view for view in views if not view.any_node]
    if _agree(demanding, numa):
        return MergeCause.ALIGNED, []
    return MergeCause.NO_COMMON_MASK, _fewest_clashing(demanding, numa)


def _agree(views: list[ResourceView], numa: NumaInfo) -> bool:
    """Whether the accepted masks of all have one in common.

    Where lists are too long to compare, what the merge asks is asked again, without distances.
    Where even that is too hard they count as agreeing, so that nobody is blamed for too little.
    """
    if not all(view.complete for view in views):
        offers = [offer_of(view.stated) for view in views if view.stated is not None]
        try:
            return preferred(offers, numa.default_mask, narrowest, Work(_MOST_WORK)) is not None
        except OutOfWork:
            return True
    masks = [set(view.accepted) for view in views]
    return not masks or bool(set.intersection(*masks))


def _fewest_clashing(views: list[ResourceView], numa: NumaInfo) -> list[ResourceView]:
    """`views` without those whose absence would leave the others clashing all the same."""
    kept = list(views)
    for view in views:
        without = [other for other in kept if other is not view]
        if not _agree(without, numa):
            kept = without
    return kept


def _sentence(
    record: MergeRecord,
    policy: Policy,
    numa: NumaInfo,
    cause: MergeCause,
    blamed: list[ResourceView],
) -> str:
    subject = "the pod" if record.container is None else f'container "{record.container}"'
    merged = mask_words(record.best.mask)
    if cause is MergeCause.ALIGNED:
        return f"policy {policy.name} admits {subject}: all resources agree on {merged}"
    outcome = f"admits {subject} unaligned" if record.admitted else f"refuses {subject}"
    return f"policy {policy.name} {outcome}: {_obstacle(policy, numa, cause, blamed)}"


def _obstacle(policy: Policy, numa: NumaInfo, cause: MergeCause, blamed: list[ResourceView]) -> str:
    names = _listed([view.resource for view in blamed])
    if cause is MergeCause.NOWHERE:
        return f"no set of NUMA nodes can give {names}"
    if cause is MergeCause.NO_COMMON_MASK:
        wishes = "; ".join(f"{view.resource} on {_choice(view)}" for view in blamed)
        return f"{names} have no set of NUMA nodes in common ({wishes})"
    if policy.alignment_guaranteed:
        return f"no NUMA node alone can give {names}"
    alone = _listed(
        [
            f"{view.resource} on {mask_words(best.mask)}"
            for view in blamed
            if (best := _best_alone(view, policy, numa)) is not None
        ]
    )
    detail = f" (best that is left: {alone})" if alone else ""
    return f"no preferred set of NUMA nodes can give {names}{detail}"


def _choice(view: ResourceView) -> str:
    masks = view.accepted
    named = [mask_words(mask) for mask in masks[:_MOST_MASKS_NAMED]]
    if not view.complete:
        named.append("others")
    elif len(masks) > _MOST_MASKS_NAMED:
        named.append(f"{len(masks) - _MOST_MASKS_NAMED} more")
    return " or ".join(named)


def _listed(words: list[str]) -> str:
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"

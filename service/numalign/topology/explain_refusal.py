"""Why the policy refused a pod: the obstacle that a merge ran into, in sentences.

Separate from the arithmetic of what would have fitted, and from failed allocations. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from numalign.model.ids import NumaId
from numalign.model.pod import Pod
from numalign.provider.values import ResourceFacts
from numalign.topology.explain_merge import (
    MergeCause,
    MergeVerdict,
    ResourceView,
    explain_merge,
    mask_words,
)
from numalign.topology.explain_words import (
    amount_words,
    asked_words,
    is_bytes,
    listed,
    nodes_words,
    noted,
    without_subject,
)
from numalign.topology.explanation import Found, Obstacle, SamePod, same_pod, with_choices
from numalign.topology.numa_info import NumaInfo
from numalign.topology.policy import Policy
from numalign.topology.scope import MergeRecord
from numalign.topology.would_fit import demands_of, largest_fit


def merge_obstacle(
    record: MergeRecord, policy: Policy, numa: NumaInfo, pod: Pod, found: Sequence[Found]
) -> Obstacle:
    """What a merge that the policy refused ran into.

    `found` are the facts of all providers, as they stood at the merge.
    """
    verdict = explain_merge(record, policy, numa)
    by_name = {(one.provider, one.facts.resource): one for one in found}
    blamed = [view for view in verdict.resources if view.resource in verdict.clashing]
    known = [(view, by_name.get((view.provider, view.resource))) for view in blamed]
    if verdict.cause is MergeCause.NO_COMMON_MASK or any(one is None for _, one in known):
        sentences = [asked_words(one.facts) for _, one in known if one]
        sentences.append(f"{without_subject(verdict)}, so {_refusal(record, policy)}")
    else:
        pairs = [(view, one) for view, one in known if one is not None]
        sentences = _unplaced(pairs, policy, pod, record.container)
        sentences[-1] += f", so {_refusal(record, policy)}"
    return Obstacle(
        container=record.container or "",
        resources=verdict.clashing,
        why=". ".join(sentences),
        would_fit=_would_fit(record, verdict, policy, numa, pod, found),
        found=with_choices(found, record, policy),
    )


def fault_obstacle(message: str) -> Obstacle:
    """What a pod that cannot be judged ran into."""
    return Obstacle(container="", resources=(), why=message)


def _unplaced(
    pairs: Sequence[tuple[ResourceView, Found]], policy: Policy, pod: Pod, container: str | None
) -> list[str]:
    """A sentence for each resource that no set of nodes can give.

    A provider may judge its resources together: then those that have enough somewhere are not
    named beside one that has not, and give their common reason once.
    """
    short = {view.provider for view, one in pairs if not _enough_on(one)}
    told = set()
    sentences = []
    for view, one in pairs:
        if _enough_on(one) and view.provider in short:
            continue
        likewise = view.provider in told and view.provider not in short
        told.add(view.provider)
        mine = same_pod(one.facts, pod, container)
        reason = "likewise" if likewise else _reason(view, one, policy, mine)
        sentences.append(f"{asked_words(one.facts)}: {reason}")
    return sentences


def _enough_on(found: Found) -> list[NumaId]:
    """The nodes that have enough free for all that is asked."""
    return [node.node for node in found.facts.nodes if node.free >= found.facts.requested]


def _reason(view: ResourceView, found: Found, policy: Policy, mine: SamePod) -> str:
    """Why no set of nodes that the policy accepts can give one resource."""
    facts = found.facts
    fewest = facts.minimum_nodes or 0
    if mine.itself:
        return "the pod is asked about again, and holds another amount of it"
    if facts.requested > sum(node.capacity - node.reserved for node in facts.nodes):
        return "that is more than this machine can ever give"
    if view.nowhere and facts.requested > sum(node.free for node in facts.nodes):
        return noted("all nodes together have too little free", _note_on_unheld(facts)) + (
            _held_by_pod(found, mine)
        )
    if view.nowhere:
        return noted("its provider finds no set of nodes for it", facts.note)
    if policy.alignment_guaranteed and fewest > 1:
        return f"even an empty machine needs {fewest} nodes for it, and {policy.name} takes one"
    enough = _enough_on(found)
    if fewest == 1 and enough:
        return _though_free(enough, found, mine)
    if fewest == 1:
        now = "no single node can hold it now, though an empty one could"
        return noted(now, _note_on_unheld(facts)) + _held_by_pod(found, mine)
    most = sorted((node.free for node in facts.nodes), reverse=True)[:fewest]
    if fewest and sum(most) < facts.requested:
        return f"no {fewest} nodes can hold it now, though {fewest} empty ones could" + (
            _held_by_pod(found, mine)
        )
    return noted("no set of nodes that it could have is preferred", facts.note)


def _note_on_unheld(facts: ResourceFacts) -> str:
    """The provider's note, where a node lacks something that nobody holds: it says why."""
    for node in facts.nodes:
        held = sum(holder.amount for holder in node.holders)
        if node.free + held < node.capacity - node.reserved:
            return facts.note
    return ""


def _though_free(enough: Sequence[int], found: Found, mine: SamePod) -> str:
    """Why a node that has enough free is not taken."""
    has = f"{nodes_words(enough)} {'has' if len(enough) == 1 else 'have'} enough free"
    tied = mine.nodes()
    if tied and not is_bytes(found.facts.resource):
        return (
            f"{has}, but {_holdings_words(found, mine, sorted(tied))}, which has to be used "
            f"again, so every set of nodes must contain {nodes_words(sorted(tied))}: the earlier "
            "placement is the cause"
        )
    if found.facts.note:
        return f"{has}, but {found.facts.note.rstrip('.')}"
    return f"{has}, but its provider does not offer it alone"


def _held_by_pod(found: Found, mine: SamePod) -> str:
    """That the pod's own earlier containers hold what is missing, where that is so."""
    facts = found.facts
    decisive = [
        node.node
        for node in facts.nodes
        if node.free < facts.requested <= node.free + mine.on(node.node)
    ]
    if not decisive:
        return ""
    return f"; {_holdings_words(found, mine, decisive)}, which is the cause"


def _holdings_words(found: Found, mine: SamePod, nodes: Sequence[int]) -> str:
    """`container "a" of the same pod holds 4 on NUMA node 0`."""
    words = []
    for container, held in mine.by_container.items():
        on = [node for node in nodes if held.get(node)]
        if on:
            amount = amount_words(found.facts.resource, sum(held[node] for node in on))
            kind = "init container" if mine.reusable else "container"
            words.append(
                f'{kind} "{container}" of the same pod holds {amount} on {nodes_words(on)}'
            )
    return listed(words)


def _refusal(record: MergeRecord, policy: Policy) -> str:
    if policy.alignment_guaranteed or record.best.mask is None:
        return f"policy {policy.name} refuses it"
    best = mask_words(record.best.mask)
    return f"the best mask {best} is not preferred and policy {policy.name} refuses it"


def _would_fit(
    record: MergeRecord,
    verdict: MergeVerdict,
    policy: Policy,
    numa: NumaInfo,
    pod: Pod,
    found: Sequence[Found],
) -> str:
    demands = demands_of(verdict.resources, found, pod, record.container)
    if demands is None:
        return ""
    fit = largest_fit(demands, numa.nodes, single_only=policy.alignment_guaranteed)
    return fit.words() if fit else ""

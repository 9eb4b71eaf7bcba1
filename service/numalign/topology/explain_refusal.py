"""Why a pod was refused: the obstacle that a merge or an allocation ran into, in sentences.

Separate from the arithmetic of what would have fitted, and from the account of an admission.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from numalign.model.numa_mask import NumaMask
from numalign.model.pod import Pod
from numalign.topology.explain_merge import (
    MergeCause,
    MergeVerdict,
    ResourceView,
    explain_merge,
    mask_words,
)
from numalign.topology.explain_words import amount_words, asked_words, is_bytes, listed, nodes_words
from numalign.topology.explanation import Found, Obstacle, SamePod, same_pod, with_choices
from numalign.topology.numa_info import NumaInfo
from numalign.topology.policy import Policy
from numalign.topology.policy_none import NAME as NONE
from numalign.topology.scope import MergeRecord
from numalign.topology.would_fit import Demand, largest_fit, most_cpus, other_policy


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
        sentences = [verdict.sentence, *(asked_words(one.facts) for _, one in known if one)]
    else:
        sentences = [
            _unplaced(view, one, policy, same_pod(one.facts, pod, record.container))
            for view, one in known
            if one is not None
        ]
        sentences[-1] += f", so {_refusal(record, policy)}"
    return Obstacle(
        container=record.container or "",
        resources=verdict.clashing,
        why=". ".join(sentences),
        would_fit=_would_fit(record, verdict, policy, numa, pod, found),
        found=with_choices(found, record, policy),
    )


def allocation_obstacle(
    *,
    provider: str,
    container: str,
    message: str,
    plugin: str,
    record: MergeRecord | None,
    policy: Policy,
    numa: NumaInfo | None,
    pod: Pod,
    found: Sequence[Found],
) -> Obstacle:
    """What an allocation ran into that `provider` failed with `message`.

    `plugin` is the resource whose device plugin failed, if one did. `record` is the merge
    that the allocation followed, if there was one.
    """
    own = [one for one in found if one.provider == provider]
    short = _short_of(own, message, plugin)
    names = tuple(one.facts.resource for one in short)
    who = f"the device plugin of {plugin}" if plugin else f"provider {provider}"
    what = listed(names) or "what was asked"
    sentences = [f"{who} could not allocate {what}: {message}"]
    sentences += [_with_note(one) for one in short]
    would_fit = ""
    if not plugin:
        would_fit = _allocation_fit(short, record, policy, numa, pod, found, container)
    return Obstacle(
        container=container,
        resources=names or ((plugin,) if plugin else ()),
        why=". ".join(sentences),
        would_fit=would_fit,
        found=with_choices(own, record, policy),
    )


def fault_obstacle(message: str) -> Obstacle:
    """What a pod that cannot be judged ran into."""
    return Obstacle(container="", resources=(), why=message)


def _unplaced(view: ResourceView, found: Found, policy: Policy, mine: SamePod) -> str:
    return f"{asked_words(found.facts)}: {_reason(view, found, policy, mine)}"


def _reason(view: ResourceView, found: Found, policy: Policy, mine: SamePod) -> str:
    """Why no set of nodes that the policy accepts can give one resource."""
    facts = found.facts
    fewest = facts.minimum_nodes or 0
    if mine.itself:
        return "the pod is asked about again, and holds another amount of it"
    if facts.requested > sum(node.capacity - node.reserved for node in facts.nodes):
        return "that is more than this machine can ever give"
    if view.nowhere and facts.requested > sum(node.free for node in facts.nodes):
        return "all nodes together have too little free" + _held_by_pod(found, mine)
    if view.nowhere:
        return _noted("its provider finds no set of nodes for it", facts.note)
    if policy.alignment_guaranteed and fewest > 1:
        return f"even an empty machine needs {fewest} nodes for it, and {policy.name} takes one"
    enough = [node.node for node in facts.nodes if node.free >= facts.requested]
    if fewest == 1 and enough:
        return _though_free(enough, found, mine)
    if fewest == 1:
        return "no single node can hold it now, though an empty one could" + _held_by_pod(
            found, mine
        )
    most = sorted((node.free for node in facts.nodes), reverse=True)[:fewest]
    if fewest and sum(most) < facts.requested:
        return f"no {fewest} nodes can hold it now, though {fewest} empty ones could" + (
            _held_by_pod(found, mine)
        )
    return _noted("no set of nodes that it could have is preferred", facts.note)


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
    return _noted(f"{has}, but its provider does not offer one of them alone", found.facts.note)


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


def _noted(text: str, note: str) -> str:
    return f"{text} ({note.rstrip('.')})" if note else text


def _with_note(found: Found) -> str:
    return _noted(asked_words(found.facts), found.facts.note)


def _refusal(record: MergeRecord, policy: Policy) -> str:
    if policy.alignment_guaranteed or record.best.mask is None:
        return f"policy {policy.name} refuses it"
    best = mask_words(record.best.mask)
    return f"the best mask {best} is not preferred and policy {policy.name} refuses it"


def _short_of(own: Sequence[Found], message: str, plugin: str) -> list[Found]:
    """The resources that a provider failed over: those it names, else those it lacks."""
    asked = [one for one in own if one.facts.requested]
    for chosen in (
        [one for one in asked if one.facts.resource == plugin],
        [one for one in asked if _is_named(one.facts.resource, message)],
        [one for one in asked if _lacks(one)],
    ):
        if chosen:
            return chosen
    return asked


def _is_named(resource: str, message: str) -> bool:
    return bool(re.search(rf"(?<![\w./-]){re.escape(resource)}(?![\w/-]|\.\w)", message))


def _lacks(found: Found) -> bool:
    return sum(node.free for node in found.facts.nodes) < found.facts.requested


def _would_fit(
    record: MergeRecord,
    verdict: MergeVerdict,
    policy: Policy,
    numa: NumaInfo,
    pod: Pod,
    found: Sequence[Found],
) -> str:
    demands = _demands(verdict.resources, found, pod, record.container)
    words = []
    if demands is not None:
        fit = largest_fit(demands, numa.nodes, single_only=policy.alignment_guaranteed)
        words = [fit.words()] if fit else []
    other = other_policy(record, verdict, policy, numa)
    return "; or ".join([*words, other] if other else words)


def _allocation_fit(
    short: Sequence[Found],
    record: MergeRecord | None,
    policy: Policy,
    numa: NumaInfo | None,
    pod: Pod,
    found: Sequence[Found],
    container: str,
) -> str:
    """What the provider could have allocated, where a smaller request is judged the same."""
    if len(short) == 1 and short[0].facts.resource == "cpu":
        facts = short[0].facts
        if facts.requested <= 1 or not _smaller_passes(facts.minimum_nodes, policy):
            return ""
        return most_cpus(facts)
    views: tuple[ResourceView, ...] = ()
    if record is not None and numa is not None:
        views = explain_merge(record, policy, numa).resources
    failing = short[0].provider if short else ""
    others = _demands([v for v in views if v.provider != failing], found, pod, container or None)
    if others is None or not short:
        return ""
    asked = [one for one in found if one.provider == failing and one.facts.requested]
    demands = [*others, *(_demand(one, frozenset(), pod, container or None) for one in asked)]
    nodes = [node.node for node in short[0].facts.nodes]
    fit = largest_fit(demands, nodes, single_only=True)
    return fit.words() if fit else ""


def _smaller_passes(minimum_nodes: int | None, policy: Policy) -> bool:
    """Whether the policy takes fewer CPUs where it took this many.

    `restricted` may not: what needs two nodes may have them, what needs one may find none.
    """
    return policy.name == NONE or minimum_nodes == 1


def _demands(
    views: Iterable[ResourceView], found: Sequence[Found], pod: Pod, container: str | None
) -> list[Demand] | None:
    """The resources that mind; None where the facts of one are not known."""
    by_name = {(one.provider, one.facts.resource): one for one in found}
    demands = []
    for view in views:
        if view.any_node:
            continue
        one = by_name.get((view.provider, view.resource))
        if one is None:
            return None
        demands.append(_demand(one, frozenset(view.accepted), pod, container))
    return demands


def _demand(found: Found, accepted: frozenset[NumaMask], pod: Pod, container: str | None) -> Demand:
    return Demand(
        provider=found.provider,
        facts=found.facts,
        accepted=accepted,
        same_pod=same_pod(found.facts, pod, container),
    )

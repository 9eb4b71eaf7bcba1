"""Why an allocation failed: what the provider or the device plugin said, and its facts.

Separate from merges that the policy refused: here the policy had agreed. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from numalign.model.pod import Pod
from numalign.topology.explain_merge import ResourceView, explain_merge
from numalign.topology.explain_words import asked_words, listed, noted
from numalign.topology.explanation import Found, Obstacle, with_choices
from numalign.topology.numa_info import NumaInfo
from numalign.topology.policy import Policy
from numalign.topology.policy_none import NAME as NONE
from numalign.topology.scope import MergeRecord
from numalign.topology.would_fit import demand_of, demands_of, largest_fit, most_cpus


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


def _with_note(found: Found) -> str:
    return noted(asked_words(found.facts), found.facts.note)


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
        if facts.requested <= 1 or not _fewer_cpus_pass(facts.minimum_nodes, policy, record):
            return ""
        return most_cpus(facts)
    if policy.name != NONE and _merged_with_others(pod, record):
        return ""
    views: tuple[ResourceView, ...] = ()
    if record is not None and numa is not None:
        views = explain_merge(record, policy, numa).resources
    failing = short[0].provider if short else ""
    others = demands_of([v for v in views if v.provider != failing], found, pod, container or None)
    if others is None or not short:
        return ""
    asked = [one for one in found if one.provider == failing and one.facts.requested]
    demands = [*others, *(demand_of(one, frozenset(), pod, container or None) for one in asked)]
    nodes = [node.node for node in short[0].facts.nodes]
    fit = largest_fit(demands, nodes, single_only=True)
    return fit.words() if fit else ""


def _merged_with_others(pod: Pod, record: MergeRecord | None) -> bool:
    """Whether one merge was for all containers of a pod.

    What all of them ask for may have been too much for any set of nodes to be preferred, and less
    in one of them be wanted on nodes that do not have it.
    """
    return record is not None and record.container is None and len(pod.all_containers()) > 1


def _fewer_cpus_pass(minimum_nodes: int | None, policy: Policy, record: MergeRecord | None) -> bool:
    """Whether the policy takes fewer CPUs where it took this many.

    `restricted` may not: what needs two nodes may have them, what needs one may find none. Where
    the pod was merged as a whole, it is the pod that must have needed one.
    """
    if policy.name == NONE:
        return True
    if record is not None and record.container is None and not _on_one_node(record):
        return False
    return minimum_nodes == 1


def _on_one_node(record: MergeRecord) -> bool:
    return record.best.mask is not None and record.best.mask.bit_count() == 1

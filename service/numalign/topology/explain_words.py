"""Amounts, nodes and lists in plain words, as explanations use them.

Separate from the sentences so that every part of an explanation writes the same thing alike.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from numalign.model.numa_mask import NumaMask
from numalign.model.resource_names import is_hugepages
from numalign.provider.values import NodeFacts, ResourceFacts
from numalign.topology.explain_merge import MergeVerdict, mask_words

LONGEST_PARAGRAPH = 700
"""About how many characters a summary may have."""

_UNITS = (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))
_MOST_NODES_NAMED = 8
_MOST_MASKS_NAMED = 3
_MOST_HOLDERS_NAMED = 2


def is_bytes(resource: str) -> bool:
    """Whether amounts of this resource are bytes."""
    return resource == "memory" or is_hugepages(resource)


def amount_words(resource: str, amount: int) -> str:
    """An amount with its unit: `5` CPUs or devices, `12.5Gi` of memory.

    Bytes are cut to two decimals, never rounded up, so that "at most" stays true.
    """
    if not is_bytes(resource):
        return str(amount)
    for unit, size in _UNITS:
        if amount >= size:
            hundredths = amount * 100 // size
            text = f"{hundredths // 100}.{hundredths % 100:02}".rstrip("0").rstrip(".")
            return text + unit
    return f"{amount} bytes" if amount else "0"


def listed(words: Sequence[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def nodes_words(nodes: Iterable[int]) -> str:
    """`NUMA node 1`, `NUMA nodes 0 and 2`."""
    names = [str(node) for node in nodes]
    return f"NUMA node{'' if len(names) == 1 else 's'} {listed(names)}"


def masks_words(masks: Sequence[NumaMask], *, any_node: bool, complete: bool = True) -> str:
    """The first few of `masks`, which are in order of preference; not `complete`: of more."""
    if any_node and not masks:
        return "any node"
    named = [mask_words(mask) for mask in masks[:_MOST_MASKS_NAMED]]
    if not complete:
        named.append("others")
    elif len(masks) > _MOST_MASKS_NAMED:
        named.append(f"{len(masks) - _MOST_MASKS_NAMED} more")
    return listed(named, "or") or "nothing"


def without_subject(verdict: MergeVerdict) -> str:
    """The verdict's sentence without the policy and the container, where they are named already."""
    return verdict.sentence.partition(": ")[2]


def asked_words(facts: ResourceFacts) -> str:
    """What was asked of a resource and what its nodes have.

    `cpu asked 5; NUMA nodes 0, 1 and 2 have 3, 4 and 4 free of 6`.
    """
    asked = f"{facts.resource} asked {amount_words(facts.resource, facts.requested)}"
    if not facts.nodes:
        return f"{asked}; no NUMA node has any"
    if len(facts.nodes) > _MOST_NODES_NAMED:
        return f"{asked}; {_range_words(facts)}"
    has = "has" if len(facts.nodes) == 1 else "have"
    return f"{asked}; {nodes_words(n.node for n in facts.nodes)} {has} {_free_words(facts)}"


def noted(text: str, note: str) -> str:
    """`text`, with a provider's note in parentheses if there is one."""
    return f"{text} ({note.rstrip('.')})" if note else text


def holders_words(facts: ResourceFacts) -> str:
    """Who holds the resource, the largest holders first; empty if nobody does."""
    amounts: dict[str, int] = {}
    for node in facts.nodes:
        for holder in node.holders:
            name = f"{holder.pod_uid}/{holder.container}" if holder.container else holder.pod_uid
            amounts[name] = amounts.get(name, 0) + holder.amount
    largest = sorted(amounts, key=lambda name: (-amounts[name], name))
    words = [
        f"{name} ({amount_words(facts.resource, amounts[name])})"
        for name in largest[:_MOST_HOLDERS_NAMED]
    ]
    if len(largest) > _MOST_HOLDERS_NAMED:
        words.append(f"{len(largest) - _MOST_HOLDERS_NAMED} more")
    return f"{facts.resource} is held by {listed(words)}" if words else ""


def paragraph(sentences: Iterable[str], more: str = "", always: int = 1) -> str:
    """The sentences with full stops, as many as there is room for; the first of them `always`.

    Where some are left out, `more` is added, with `{}` replaced by their number.
    """
    wanted = [f"{sentence.rstrip('.')}." for sentence in sentences if sentence]
    taken = wanted[:always]
    for sentence in wanted[always:]:
        if len(" ".join([*taken, sentence])) > LONGEST_PARAGRAPH:
            break
        taken.append(sentence)
    left_out = len(wanted) - len(taken)
    if left_out and more:
        taken.append(more.format(left_out))
    return " ".join(taken)


def _free_words(facts: ResourceFacts) -> str:
    resource, nodes = facts.resource, facts.nodes
    capacities = {node.capacity for node in nodes}
    if len(capacities) > 1:
        return f"{listed([_of_words(resource, node) for node in nodes])} free"
    free = listed([amount_words(resource, node.free) for node in nodes])
    return f"{free} free of {amount_words(resource, nodes[0].capacity)}"


def _of_words(resource: str, node: NodeFacts) -> str:
    return f"{amount_words(resource, node.free)} of {amount_words(resource, node.capacity)}"


def _range_words(facts: ResourceFacts) -> str:
    free = [node.free for node in facts.nodes]
    least, most = (amount_words(facts.resource, amount) for amount in (min(free), max(free)))
    return (
        f"{len(free)} NUMA nodes have {least} to {most} free each, "
        f"{amount_words(facts.resource, sum(free))} in all"
    )

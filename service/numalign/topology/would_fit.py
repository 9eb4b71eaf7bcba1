"""What would have fitted: the largest request that the policy would take now.

Judged from the facts, and said only where it is certain whatever the provider's options are.
Separate from the sentences on why a pod is refused, which look back; this looks ahead. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from operator import attrgetter

from numalign.model.numa_mask import NumaMask, mask_of, nodes_of
from numalign.model.pod import Pod
from numalign.provider.values import ResourceFacts
from numalign.topology.explain_merge import ResourceView
from numalign.topology.explain_words import amount_words, is_bytes, listed, nodes_words
from numalign.topology.explanation import Found, SamePod, same_pod

_CPU = "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """One resource that minds where it is placed: its facts, and the masks accepted for it."""

    provider: str
    facts: ResourceFacts
    accepted: frozenset[NumaMask]
    same_pod: SamePod

    @property
    def requested(self) -> int:
        """What was asked."""
        return self.facts.requested

    def free_on(self, node: int) -> int:
        """What a request placed on this node alone is sure to find there."""
        free = next((n.free for n in self.facts.nodes if n.node == node), 0)
        return free if is_bytes(self.facts.resource) else free + self.same_pod.taken_over_on(node)

    def may_leave_out(self, mask: NumaMask) -> bool:
        """Whether nothing that the pod holds ties the resource to nodes outside `mask`.

        CPUs and devices of init containers must be in the set of nodes of whoever takes them
        over; memory need not.
        """
        if is_bytes(self.facts.resource):
            return True
        return all(mask >> node & 1 for node in self.same_pod.nodes())

    def is_plain(self) -> bool:
        """Whether the free amounts say all about a smaller request.

        Not where groups of nodes can only be used together, which only the note tells, nor where
        the asker holds some already: then it is judged by that.
        """
        grouped = is_bytes(self.facts.resource) and bool(self.facts.note)
        return not grouped and not self.same_pod.itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A request that would have been admitted on `mask`: what is lower than asked, by resource.

    `within` is a condition that the numbers do not show; empty if there is none.
    """

    mask: NumaMask
    lowered: tuple[tuple[str, int], ...]
    kept: float
    within: str = ""

    def words(self) -> str:
        """As part of a sentence.

        On one node anything less fits as well; what several nodes are preferred for may, if it
        were less, be wanted on fewer nodes, none of which has it.
        """
        bound = "of at most" if self.mask.bit_count() == 1 else "of"
        amounts = [f"{name} {bound} {amount_words(name, most)}" for name, most in self.lowered]
        text = f"{listed(amounts)} on {nodes_words(nodes_of(self.mask))}"
        return f"{text}, within this: {self.within}" if self.within else text


def demands_of(
    views: Iterable[ResourceView], found: Sequence[Found], pod: Pod, container: str | None
) -> list[Demand] | None:
    """The resources that mind in a merge; None where the facts of one are not known.

    `container` is the one that asks, None the pod as a whole.
    """
    by_name = {(one.provider, one.facts.resource): one for one in found}
    demands = []
    for view in views:
        if view.any_node:
            continue
        one = by_name.get((view.provider, view.resource))
        if one is None:
            return None
        demands.append(demand_of(one, frozenset(view.accepted), pod, container))
    return demands


def demand_of(
    found: Found, accepted: frozenset[NumaMask], pod: Pod, container: str | None
) -> Demand:
    """One resource as it is asked for; `accepted` are the masks that the policy accepts for it."""
    return Demand(
        provider=found.provider,
        facts=found.facts,
        accepted=accepted,
        same_pod=same_pod(found.facts, pod, container),
    )


def largest_fit(
    demands: Sequence[Demand], nodes: Iterable[int], *, single_only: bool
) -> Fit | None:
    """The fit that keeps most of what was asked; None where nothing is certain.

    `demands` are all resources that mind; those whose masks do are kept as they are.
    `single_only`: the policy takes no set of several nodes.
    """
    fits = [fit for node in nodes if (fit := _on_one_node(demands, node)) is not None]
    if not single_only:
        fits += _on_several_nodes(demands)
    return max(fits, key=lambda fit: (fit.kept, -fit.mask.bit_count(), -fit.mask), default=None)


def most_cpus(facts: ResourceFacts) -> str:
    """The number of CPUs that could be allocated anywhere, where this many could not."""
    most = min(facts.requested - 1, sum(node.free for node in facts.nodes))
    if most < 1:
        return ""
    text = f"{facts.resource} of at most {amount_words(facts.resource, most)}"
    return f"{text}, within this: {facts.note}" if facts.note else text


def _on_one_node(demands: Sequence[Demand], node: int) -> Fit | None:
    mask = mask_of((node,))
    wanting = [d for d in demands if mask not in d.accepted]
    lowered: list[tuple[Demand, int]] = []
    for _, group in groupby(wanting, key=attrgetter("provider")):
        # A provider may judge its resources together, so what is enough may be kept from
        # being accepted by what is not.
        together = list(group)
        amounts = [min(d.requested, d.free_on(node)) for d in together]
        short = [(d, most) for d, most in zip(together, amounts, strict=True) if most < d.requested]
        if not short or min(amounts) < 1:
            return None
        if not all(d.is_plain() and d.may_leave_out(mask) for d in together):
            return None
        lowered += short
    return _fit(mask, lowered, len(demands)) if lowered else None


def _on_several_nodes(demands: Sequence[Demand]) -> list[Fit]:
    """Fewer CPUs on a set of nodes that is preferred for them; other resources stay as they are.

    Only CPUs: each is on one node, so that what nodes have free and hold when empty adds up.
    Not under a condition that may force the asker to go lower still, as whole cores do: for
    less, fewer nodes may be preferred, and none of them need have it.
    """
    cpus = next((d for d in demands if d.facts.resource == _CPU), None)
    if cpus is None or not cpus.is_plain() or cpus.facts.note:
        return []
    fits = []
    for mask in _several_nodes([d for d in demands if d is not cpus], cpus):
        most = sum(n.free for n in cpus.facts.nodes if mask >> n.node & 1)
        preferred = _fewest_nodes(cpus.facts, most) == mask.bit_count()
        if 0 < most < cpus.requested and preferred and cpus.may_leave_out(mask):
            fits.append(_fit(mask, [(cpus, most)], len(demands)))
    return fits


def _several_nodes(others: Sequence[Demand], cpus: Demand) -> Collection[NumaMask]:
    """The sets of several nodes to look at: those the others accept, else the emptiest nodes."""
    if others:
        common = frozenset.intersection(*(d.accepted for d in others))
        return [mask for mask in common if mask.bit_count() > 1]
    tied = cpus.same_pod.nodes()
    emptiest = sorted(cpus.facts.nodes, key=lambda n: (n.node not in tied, -n.free, n.node))
    grown = accumulate((mask_of((n.node,)) for n in emptiest), _union)
    return [mask for mask in grown if mask.bit_count() > 1]


def _union(left: NumaMask, right: NumaMask) -> NumaMask:
    return NumaMask(left | right)


def _fewest_nodes(facts: ResourceFacts, amount: int) -> int:
    """How few nodes hold `amount` when they are empty."""
    largest = sorted((node.capacity for node in facts.nodes), reverse=True)
    sums = accumulate(largest)
    return next((count for count, held in enumerate(sums, start=1) if held >= amount), 0)


def _fit(mask: NumaMask, lowered: Sequence[tuple[Demand, int]], demands: int) -> Fit:
    kept = demands - sum(1 - most / d.requested for d, most in lowered)
    notes = [d.facts.note for d, _ in lowered if d.facts.resource == _CPU and d.facts.note]
    return Fit(
        mask=mask,
        lowered=tuple((d.facts.resource, most) for d, most in lowered),
        kept=kept,
        within="; ".join(notes),
    )

"""An explanation as values: the summary, and for a refusal what stood in the way.

Separate from the sentences that fill it and from the messages that carry it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from numalign.families.choices import some_choices
from numalign.model.hint import FamilyList, HintList, TopologyHint
from numalign.model.numa_mask import narrowness
from numalign.model.pod import Container, Pod
from numalign.provider.values import ResourceFacts
from numalign.topology.policy import Policy
from numalign.topology.scope import MergeRecord

MOST_CHOICES = 64
"""How many masks are shown as the choices of one resource; all hints are in the merges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The facts of one resource, with the sets of nodes that it could live with."""

    provider: str
    facts: ResourceFacts
    choices: tuple[TopologyHint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """What stood in a pod's way. `container` is empty for the pod as a whole."""

    container: str
    resources: tuple[str, ...]
    why: str
    would_fit: str = ""
    found: tuple[Found, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How a decision was reached; `summary` is one paragraph."""

    summary: str
    obstacles: tuple[Obstacle, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SamePod:
    """What other containers of the pod that is judged hold of one resource, by node.

    `reusable`: all of it is held by init containers that end before the asking container
    starts, which takes it over. `itself`: the asking container holds some already.
    """

    by_container: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    reusable: bool = True
    itself: bool = False

    def nodes(self) -> frozenset[int]:
        """The nodes on which something is held."""
        return frozenset(node for held in self.by_container.values() for node in held)

    def on(self, node: int) -> int:
        """How much is held on one node."""
        return sum(held.get(node, 0) for held in self.by_container.values())

    def taken_over_on(self, node: int) -> int:
        """How much of it the asking container is sure to take over.

        Init containers may share what they held, so their amounts do not add up.
        """
        if not self.reusable:
            return 0
        return max((held.get(node, 0) for held in self.by_container.values()), default=0)


def same_pod(facts: ResourceFacts, pod: Pod, container: str | None) -> SamePod:
    """What `pod` holds of the resource already; `container` (None: the pod) is the asker."""
    by_container: dict[str, dict[int, int]] = {}
    itself = False
    for node in facts.nodes:
        for holder in node.holders:
            if holder.pod_uid != pod.uid:
                continue
            if container is None or holder.container in {"", container}:
                itself = True
            else:
                by_container.setdefault(holder.container, {})[node.node] = holder.amount
    inits = {c.name for c in pod.init_containers if c.is_regular_init}
    return SamePod(by_container=by_container, reusable=by_container.keys() <= inits, itself=itself)


def container_of(pod: Pod, name: str | None) -> Container | None:
    """The container that a merge or an allocation was for; None for the pod as a whole."""
    return pod.container(name) if name else None


def with_choices(
    found: Iterable[Found], record: MergeRecord | None, policy: Policy
) -> tuple[Found, ...]:
    """`found` with the choices that each resource had in the merge.

    Those that the policy accepts come first, then the narrowest; `MOST_CHOICES` at most.
    """
    answers = {} if record is None else {a.provider: a.hints for a in record.answers}
    return tuple(
        replace(one, choices=_choices(one, answers[one.provider], policy))
        if one.provider in answers
        else one
        for one in found
    )


def _choices(
    found: Found, hints: Mapping[str, HintList] | None, policy: Policy
) -> tuple[TopologyHint, ...]:
    if hints is None:
        return (TopologyHint(None, True),)
    if found.facts.resource not in hints:
        # The memory provider leaves out what it cannot place; others what nobody asked for.
        return () if found.facts.requested else (TopologyHint(None, True),)
    listed = hints[found.facts.resource]
    if listed is None:
        return (TopologyHint(None, True),)

    if isinstance(listed, FamilyList):
        # Those of the preferred size come first; whether that will do is the policy's to say.
        listed = some_choices(listed, MOST_CHOICES).hints

    def order(hint: TopologyHint) -> tuple[bool, tuple[int, int]]:
        return (not policy.accepts(hint), (0, 0) if hint.mask is None else narrowness(hint.mask))

    return tuple(sorted(listed, key=order)[:MOST_CHOICES])

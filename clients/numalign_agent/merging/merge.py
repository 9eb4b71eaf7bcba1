"""What a source's new set of pods changes, compared with its last one (MERGE-1 to MERGE-5).

Pure: the time at which a pod is seen is handed in, and the table of a source is a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from numalign_agent.changes import Operation, PodChange
from numalign_agent.pod import CONFIG_SEEN, CONFIG_SOURCE, LOCAL_ANNOTATIONS, AgentPod

Table = Mapping[str, AgentPod]
"""The pods of one source by UID."""

KUBELET = "kubelet"
"""The source whose pods were merged before."""

_DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")
_TAKEN_OVER = ("labels", *_DELETION, "generation")


@dataclass(frozen=True, slots=True)
class Merged:
    """The source's table afterwards, the messages in order, and pods whose name was taken."""

    table: Table
    changes: tuple[PodChange, ...]
    duplicates: tuple[AgentPod, ...]


def merge(source: str, table: Table | None, pods: Sequence[AgentPod], seen: str) -> Merged:
    """Compare a set with the source's table; None: it has delivered nothing yet.

    `seen` is when, as text, a pod that was not known is seen.
    """
    known = table or {}
    kept, duplicates = _first_of_each_name(pods)
    after: dict[str, AgentPod] = {}
    sorted_out: dict[Operation, list[AgentPod]] = {operation: [] for operation in Operation}
    for pod in kept:
        incoming = (
            pod if _names_its_source(source, pod) else pod.annotated(**{CONFIG_SOURCE: source})
        )
        operation, merged = _merge_pod(known.get(pod.uid), incoming, seen)
        after[pod.uid] = merged
        if operation is not None:
            sorted_out[operation].append(merged)
    sorted_out[Operation.REMOVE] = [pod for uid, pod in known.items() if uid not in after]
    changes = tuple(_messages(source, sorted_out, is_first=table is None))
    return Merged(after, changes, tuple(duplicates))


def _messages(
    source: str, sorted_out: Mapping[Operation, Sequence[AgentPod]], *, is_first: bool
) -> Iterator[PodChange]:
    something = (Operation.ADD, Operation.UPDATE, Operation.DELETE)
    for operation in (Operation.REMOVE, *something):
        if sorted_out[operation]:
            yield PodChange(operation, source, tuple(sorted_out[operation]))
    if is_first and not any(sorted_out[operation] for operation in something):
        yield PodChange(Operation.ADD, source, ())  # the source has spoken, if only of nothing
    if sorted_out[Operation.RECONCILE]:
        yield PodChange(Operation.RECONCILE, source, tuple(sorted_out[Operation.RECONCILE]))


def _merge_pod(
    known: AgentPod | None, incoming: AgentPod, seen: str
) -> tuple[Operation | None, AgentPod]:
    if known is None:
        return Operation.ADD, incoming.annotated(**{CONFIG_SEEN: seen})
    if _says_the_same(known, incoming):
        if known.status == incoming.status:
            return None, known
        return Operation.RECONCILE, _with_part("status", known, incoming)
    operation = Operation.DELETE if incoming.deletion_timestamp else Operation.UPDATE
    return operation, _taken_over(known, incoming)


def _says_the_same(known: AgentPod, incoming: AgentPod) -> bool:
    return (
        known.spec == incoming.spec
        and known.labels == incoming.labels
        and all(known.metadata.get(name) == incoming.metadata.get(name) for name in _DELETION)
        and _foreign_annotations(known) == _foreign_annotations(incoming)
    )


def _foreign_annotations(pod: AgentPod) -> dict[str, str]:
    return {k: v for k, v in pod.annotations.items() if k not in LOCAL_ANNOTATIONS}


def _taken_over(known: AgentPod, incoming: AgentPod) -> AgentPod:
    """What the source says now, with this node's own annotations as they were."""
    local = {k: v for k, v in known.annotations.items() if k in LOCAL_ANNOTATIONS}
    fields = {name: incoming.metadata.get(name) for name in _TAKEN_OVER}
    changed = known.replacing("metadata", **fields, annotations={**incoming.annotations, **local})
    return _with_part("spec", _with_part("status", changed, incoming), incoming)


def _with_part(part: str, pod: AgentPod, incoming: AgentPod) -> AgentPod:
    document = {key: value for key, value in pod.document.items() if key != part}
    if part in incoming.document:
        document[part] = incoming.document[part]
    return AgentPod(document)


def _names_its_source(source: str, pod: AgentPod) -> bool:
    """A pod that a kubelet hands on says itself where it is from: what is static is critical."""
    return source == KUBELET and bool(pod.source)


def _first_of_each_name(pods: Sequence[AgentPod]) -> tuple[list[AgentPod], list[AgentPod]]:
    names: set[str] = set()
    kept: list[AgentPod] = []
    duplicates: list[AgentPod] = []
    for pod in pods:
        (duplicates if pod.full_name in names else kept).append(pod)
        names.add(pod.full_name)
    return kept, duplicates

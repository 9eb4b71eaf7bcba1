"""Explanations to their wire form: merges with every absence kept, obstacles, facts.

Also what a record tells of a pod's containers. Separate from what decides and explains, so
that it stays free of protobuf.
"""

from __future__ import annotations

from collections.abc import Iterable

from numalign.model.ids import NumaId, PodUid
from numalign.model.pod import Container, Pod
from numalign.provider.hint_messages import hint_to_message, hints_to_message
from numalign.provider.messages import facts_to_messages
from numalign.provider.values import Holder, NodeFacts, ResourceFacts
from numalign.topology.explanation import Explanation, Found, Obstacle
from numalign.topology.scope import MergeRecord
from numalign.v1 import types_pb2 as pb


def containers_to_messages(pod: Pod) -> list[pb.AdmittedContainer]:
    """The containers of a pod, as a record tells them."""
    return [
        pb.AdmittedContainer(name=container.name, kind=_kind(container))
        for container in pod.all_containers()
    ]


def _kind(container: Container) -> pb.ContainerKind.ValueType:
    if container.is_sidecar:
        return pb.CONTAINER_KIND_SIDECAR
    return pb.CONTAINER_KIND_INIT if container.is_init else pb.CONTAINER_KIND_APP


def explanation_to_message(explanation: Explanation) -> pb.Explanation:
    """Summary and obstacles; the caller adds what `replay` needs."""
    return pb.Explanation(
        summary=explanation.summary,
        obstacles=[obstacle_to_message(obstacle) for obstacle in explanation.obstacles],
    )


def merge_to_message(record: MergeRecord) -> pb.MergeRecord:
    """One merge: every provider's hints in the order given, no mapping as an unset field."""
    return pb.MergeRecord(
        container=record.container or "",
        providers=[
            pb.ProviderHints(provider=answer.provider, hints=hints_to_message(answer.hints))
            for answer in record.answers
        ],
        best=hint_to_message(record.best),
        admitted=record.admitted,
    )


def obstacle_to_message(obstacle: Obstacle) -> pb.Obstacle:
    """What stood in the way."""
    return pb.Obstacle(
        container=obstacle.container,
        resources=obstacle.resources,
        why=obstacle.why,
        would_fit=obstacle.would_fit,
        facts=[_found_to_message(found) for found in obstacle.found],
    )


def found_from_messages(messages: Iterable[pb.ResourceFacts]) -> tuple[Found, ...]:
    """Facts as the providers sent them; they know no choices."""
    return tuple(
        Found(
            provider=message.provider,
            facts=ResourceFacts(
                resource=message.resource,
                requested=message.requested,
                nodes=tuple(map(_node_from_message, message.nodes)),
                minimum_nodes=message.minimum_nodes or None,
                note=message.note,
            ),
        )
        for message in messages
    )


def _found_to_message(found: Found) -> pb.ResourceFacts:
    (message,) = facts_to_messages(found.provider, (found.facts,))
    message.choices.extend(hint_to_message(hint) for hint in found.choices)
    return message


def _node_from_message(message: pb.NodeFacts) -> NodeFacts:
    return NodeFacts(
        node=NumaId(message.numa_node),
        capacity=message.capacity,
        reserved=message.reserved,
        free=message.free,
        holders=tuple(
            Holder(pod_uid=PodUid(h.pod_uid), container=h.container, amount=h.amount)
            for h in message.holders
        ),
    )

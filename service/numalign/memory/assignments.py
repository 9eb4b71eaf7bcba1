"""What the books are made of: the blocks that were booked together.

Separate from the state because start checks, re-basing and mending all make books anew from
the same list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from numalign.memory.state import Blocks, ContainerBlocks, PodBlocks
from numalign.model.ids import PodUid


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Blocks that were booked together. `container` is empty for the blocks of a whole pod."""

    pod_uid: PodUid
    container: str
    blocks: Blocks


def assignments(
    containers: ContainerBlocks, pods: PodBlocks, *, pod_entries: bool = True
) -> Iterator[Assignment]:
    """The blocks of containers, or of the pod if it booked as a whole, in the order they came.

    Without `pod_entries` the containers' blocks count for every pod (MEM-74).
    """
    for pod_uid, entries in containers.items():
        pod_blocks = pods.get(pod_uid) if pod_entries else None
        if pod_blocks:
            yield Assignment(pod_uid=pod_uid, container="", blocks=pod_blocks)
            continue
        for container, blocks in entries.items():
            yield Assignment(pod_uid=pod_uid, container=container, blocks=blocks)


def narrow_first(booked: Iterable[Assignment]) -> list[Assignment]:
    """Assignments on single nodes before those on groups, each in the order they came.

    A group can take its bytes from any of its nodes, a single node cannot: in this order
    everything that was booked at the same time finds its room again.
    """
    return sorted(
        booked, key=lambda one: max((len(b.numa_nodes) for b in one.blocks), default=0) > 1
    )

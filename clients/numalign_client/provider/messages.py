"""What an author's methods return, as messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from numalign.v1 import hint_provider_pb2 as hp
from numalign.v1 import types_pb2 as pb
from numalign_client.provider.base import Grant, Hints, NotYet

_LARGEST_NODE = 63
_NO_NODE = -1


def hint_map(hints: Hints | None) -> pb.HintMap | None:
    """The hints of every resource; None is no mapping at all.

    Raises ValueError for a NUMA node outside 0..63.
    """
    if hints is None:
        return None
    return pb.HintMap(resources={name: hint_list(entry) for name, entry in hints.items()})


def hint_list(hints: Sequence[tuple[Iterable[int] | None, bool]] | None) -> pb.HintList:
    """The hints of one resource: None has no preference, an empty list fits nowhere."""
    if hints is None:
        return pb.HintList(kind=pb.HintList.KIND_NO_PREFERENCE)
    if not hints:
        return pb.HintList(kind=pb.HintList.KIND_IMPOSSIBLE)
    affinities = [nodes is not None for nodes, _ in hints]
    return pb.HintList(
        kind=pb.HintList.KIND_HINTS,
        masks=[0 if nodes is None else _mask(nodes) for nodes, _ in hints],
        preferred=[preferred for _, preferred in hints],
        has_affinity=[] if all(affinities) else affinities,
    )


def nodes_of(hint: pb.Hint) -> frozenset[int] | None:
    """The NUMA nodes of a hint; None where it has no affinity."""
    if not hint.HasField("mask"):
        return None
    return frozenset(node for node in range(_LARGEST_NODE + 1) if hint.mask >> node & 1)


def allocation(
    container: str, given: Mapping[str, Sequence[str] | Grant]
) -> pb.ContainerAllocation:
    """What a container was given, resources in order of name.

    Raises TypeError for text where a sequence of ids is expected.
    """
    return pb.ContainerAllocation(
        container=container,
        devices=[_device(resource, given[resource]) for resource in sorted(given)],
    )


def deferral(error: NotYet) -> hp.Deferral:
    """That it is too early."""
    message = hp.Deferral(reason=error.reason, message=str(error))
    message.retry_after.FromMilliseconds(round(error.retry_after * 1000))
    return message


def _device(resource: str, given: Sequence[str] | Grant) -> pb.DeviceAllocation:
    if isinstance(given, str):
        raise TypeError(f"{resource}: a sequence of ids is expected, not the text {given!r}")
    grant = given if isinstance(given, Grant) else Grant(ids_by_node={_NO_NODE: given})
    return pb.DeviceAllocation(
        resource=resource,
        ids=sorted({i for ids in grant.ids_by_node.values() for i in ids}),
        by_numa_node=[
            pb.NumaDevices(numa_node=node, ids=sorted(ids))
            for node, ids in sorted(grant.ids_by_node.items())
            if ids
        ],
        edits=grant.edits,
    )


def _mask(nodes: Iterable[int]) -> int:
    mask = 0
    for node in nodes:
        if not 0 <= node <= _LARGEST_NODE:
            raise ValueError(f"NUMA node {node}: must lie between 0 and {_LARGEST_NODE}")
        mask |= 1 << node
    return mask

"""Numbers as people read them: bytes, NUMA masks, sets of nodes."""

from __future__ import annotations

from collections.abc import Iterable

from numalign.model.numa_mask import NumaMask, nodes_of
from numalign.v1 import types_pb2 as pb

_UNITS = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def bytes_text(size: int) -> str:
    """A size in the largest binary unit that leaves at least one: `1.5Gi`; exact or rounded."""
    if size < 1024:
        return str(size)
    value = float(size)
    unit = ""
    for unit in _UNITS:  # noqa: B007 - the last one is used below
        value /= 1024
        if value < 1024:
            break
    return f"{value:.10g}{unit}" if value == round(value, 2) else f"{value:.1f}{unit}"


def amount_text(resource: str, amount: int) -> str:
    """An amount of a resource: bytes for memory and huge pages, else a number."""
    return bytes_text(amount) if resource == "memory" or is_hugepages(resource) else str(amount)


def is_hugepages(resource: str) -> bool:
    """Whether the resource counts huge pages, in bytes."""
    return resource.startswith("hugepages-")


def nodes_text(nodes: Iterable[int]) -> str:
    """NUMA nodes as a set: `{0,1}`."""
    return "{" + ",".join(map(str, nodes)) + "}"


def mask_text(hint: pb.Hint) -> str:
    """The nodes of a hint: `{0}`, or `any` where it has no affinity."""
    if not hint.HasField("mask"):
        return "any"
    return nodes_text(nodes_of(NumaMask(hint.mask)))


def hint_text(hint: pb.Hint) -> str:
    """A hint with its preference: `{0} preferred`."""
    return f"{mask_text(hint)} {'preferred' if hint.preferred else 'not preferred'}"

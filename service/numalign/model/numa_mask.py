"""Sets of NUMA nodes as 64-bit integers, and the orders between them.

A mask is a plain integer under a type of its own: the merge looks at tens of thousands of
them, and an integer is the cheapest set there is. "No affinity" is `None`, never 0.
Rules TM-1..TM-6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NewType

NumaMask = NewType("NumaMask", int)
"""Bit i set means NUMA node i is in the set; 0 is the empty set."""

MAX_NUMA_ID = 63
"""The largest NUMA id a mask can hold (TM-1)."""

EMPTY = NumaMask(0)


def mask_of(nodes: Iterable[int]) -> NumaMask:
    """The mask that holds exactly `nodes`.

    Raises ValueError with the kubelet's text for an id outside 0..63 (TM-1).
    """
    bits = 0
    for node in nodes:
        if not 0 <= node <= MAX_NUMA_ID:
            raise ValueError("bit number must be in range 0-63")
        bits |= 1 << node
    return NumaMask(bits)


def nodes_of(mask: NumaMask) -> tuple[int, ...]:
    """The node ids in `mask`, ascending (TM-4)."""
    nodes = []
    bits = int(mask)
    while bits:
        low = bits & -bits
        nodes.append(low.bit_length() - 1)
        bits ^= low
    return tuple(nodes)


def count(mask: NumaMask) -> int:
    """How many nodes are in `mask`."""
    return mask.bit_count()


def is_narrower(a: NumaMask, b: NumaMask) -> bool:
    """Whether `a` has fewer nodes than `b`, or as many and a smaller value (TM-2)."""
    count_a, count_b = a.bit_count(), b.bit_count()
    return count_a < count_b or (count_a == count_b and a < b)


def narrowness(mask: NumaMask) -> tuple[int, int]:
    """Sort key: ascending order of this key is the order of `is_narrower` (TM-2)."""
    return (mask.bit_count(), mask)


def subsets(nodes: Sequence[int]) -> Iterator[NumaMask]:
    """All non-empty masks over `nodes`, by size, then lexicographic by position (TM-5)."""
    bits = [1 << node for node in nodes]
    for size in range(1, len(bits) + 1):
        for chosen in combinations(bits, size):
            yield NumaMask(sum(chosen))


def text_of(mask: NumaMask) -> str:
    """The kubelet's printed form: binary, padded to the width of TM-6."""
    width = 2
    for shift in range(62, 0, -2):
        if mask > 1 << shift:
            width = shift + 2
            break
    return format(mask, f"0{width}b")

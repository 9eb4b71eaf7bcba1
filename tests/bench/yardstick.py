"""A fixed piece of plain Python work, so that times of different machines can be compared.

Separate from what is measured with it: a row whose milliseconds have a target and no floor of
their own gives its ratio to this, which changes little from machine to machine.
"""

from __future__ import annotations

import time

_ROUNDS = 2000


def milliseconds() -> float:
    """How long the piece took."""
    started = time.perf_counter()
    _work()
    return (time.perf_counter() - started) * 1000


def _work() -> int:
    """Integers, tuples, sets and dictionaries, as a merge of masks has them."""
    masks: set[int] = set()
    counts: dict[int, int] = {}
    for number in range(_ROUNDS):
        mask = number * 2654435761 & 0xFF
        masks.add(mask & mask - 1)
        counts[mask] = counts.get(mask, 0) + mask.bit_count()
    ordered = sorted((count, mask) for mask, count in counts.items())
    return len(masks) + len(ordered)

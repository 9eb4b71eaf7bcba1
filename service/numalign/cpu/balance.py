"""How evenly free CPUs lie over NUMA nodes: the balance of the distributed algorithm.

Separate because its rounding decides which nodes are chosen. Rule CPU-65.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def deviation(values: Sequence[int]) -> float:
    """Population standard deviation of `values` (not empty, none negative), to 3 decimals."""
    mean = _round3(sum(values) / len(values))
    return _round3(math.sqrt(sum((value - mean) ** 2 for value in values) / len(values)))


def _round3(value: float) -> float:
    """Round a non-negative number to three decimals, halves up."""
    scaled = value * 1000
    whole = math.floor(scaled)
    return (whole + 1 if scaled - whole >= 0.5 else whole) / 1000

"""The hard eviction threshold on `memory.available`, which Node Allocatable holds back.

Separate from the admission handler for eviction: this is the only signal that counts at
construction, and it is needed before anything runs. Rules EVI-9 and MEM-8.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping

from numalign.memory.reserved_config import eviction_bytes
from numalign.model.quantity import Format, Quantity, QuantitySyntaxError

SIGNAL = "memory.available"
KUBELET_DEFAULT = "100Mi"

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z", re.ASCII)


class ThresholdError(ValueError):
    """A threshold that is none; the message is the kubelet's where it has one."""


def effective_threshold(eviction_hard: Mapping[str, str] | None, merge_defaults: bool) -> str:
    """The value of the hard threshold, empty if there is none.

    The kubelet's default applies where no hard threshold is given at all, and under
    `mergeDefaultEvictionSettings` where this one is not.
    """
    if eviction_hard is None:
        return KUBELET_DEFAULT
    return eviction_hard.get(SIGNAL, KUBELET_DEFAULT if merge_defaults else "")


def threshold_quantity(value: str, memory_capacity: Callable[[], int]) -> Quantity | None:
    """How much memory the threshold holds back; None for `0%`, `100%` and no threshold.

    `memory_capacity` gives the memory of the machine in bytes; it is called for a percentage
    only. Raises ThresholdError.
    """
    if value in ("", "0%", "100%"):
        return None
    if value.endswith("%"):
        fraction = _fraction(value)
        return Quantity.from_int(eviction_bytes(memory_capacity(), fraction), Format.BINARY_SI)
    try:
        quantity = Quantity.parse(value)
    except QuantitySyntaxError as error:
        raise ThresholdError(str(error)) from error
    if quantity.sign() <= 0:
        raise ThresholdError(f"eviction threshold {SIGNAL} must be positive: {quantity}")
    return quantity


def _fraction(value: str) -> float:
    """A percentage as a share, in the kubelet's 32-bit arithmetic.

    Decimal notation only. The kubelet also takes hexadecimal and `NaN`, and with `NaN` then
    holds back a negative amount of memory.
    """
    text = value.rstrip("%")
    if not _DECIMAL.match(text):
        raise ThresholdError(f"the percentage {value} is not a number")
    percent = float(text)
    if percent < 0:
        raise ThresholdError(f"eviction percentage threshold {SIGNAL} must be >= 0%: {value}")
    if percent > 100 or math.isinf(percent):
        raise ThresholdError(f"eviction percentage threshold {SIGNAL} must be <= 100%: {value}")
    return _single(_single(percent) / 100)


def _single(number: float) -> float:
    (rounded,) = struct.unpack("f", struct.pack("f", number))
    return float(rounded)

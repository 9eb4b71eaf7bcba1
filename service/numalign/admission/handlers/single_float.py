"""Percentages in the kubelet's arithmetic: read and held as 32-bit floats (EVI-9, EVI-10).

Separate because the texts it accepts and the way it rounds are Go's, and show in decisions.
"""

from __future__ import annotations

import math
import re
import struct

_DECIMAL = re.compile(
    r"[+-]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9][0-9_]*)?", re.ASCII
)
_HEX = re.compile(
    r"[+-]?0[xX](?:_?[0-9a-fA-F][0-9a-fA-F_]*\.?[0-9a-fA-F_]*|\.[0-9a-fA-F][0-9a-fA-F_]*)"
    r"[pP][+-]?[0-9][0-9_]*",
    re.ASCII,
)
_LONE_UNDERSCORE = re.compile(r"_(?![0-9a-fA-F])|[^0-9a-fA-FxX]_", re.ASCII)
_NAMED = re.compile(r"nan|[+-]?inf(inity)?", re.IGNORECASE | re.ASCII)
_INT64_MIN = -(1 << 63)
_INT64_MAX = (1 << 63) - 1


def parse_single(text: str) -> float:
    """The number that a text writes, rounded to 32 bits; NaN and infinities have names.

    Raises ValueError for a text that is no number or one too large.
    """
    if _NAMED.fullmatch(text):
        return float(text)
    if _LONE_UNDERSCORE.search(text):
        raise ValueError("invalid syntax")
    if _DECIMAL.fullmatch(text):
        number = float(text.replace("_", ""))
    elif _HEX.fullmatch(text):
        number = float.fromhex(text.replace("_", ""))
    else:
        raise ValueError("invalid syntax")
    single = to_single(number)
    if math.isinf(single):
        raise ValueError("value out of range")
    return single


def to_single(number: float) -> float:
    """The nearest 32-bit float; one too large becomes infinite."""
    try:
        (rounded,) = struct.unpack("f", struct.pack("f", number))
    except OverflowError:
        return math.copysign(math.inf, number)
    return float(rounded)


def truncated(number: float) -> int:
    """A 64-bit integer, cut towards zero; what does not fit becomes the smallest one."""
    if math.isnan(number) or math.isinf(number):
        return _INT64_MIN
    whole = int(number)
    return whole if _INT64_MIN <= whole <= _INT64_MAX else _INT64_MIN

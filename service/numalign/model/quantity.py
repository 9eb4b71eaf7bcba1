"""Kubernetes resource quantities: exact numbers with a printed form.

Every quantity is a whole number of billionths, because parsing rounds what is finer away
from zero; so one integer holds the number and comparing is comparing integers. Next to it
stands what the kubelet derives from how it stores a quantity: the format, the decimal place
a plain 64-bit integer is kept at (`as_int64`), and the original text where it is already
canonical. Separate from pods because configuration, devices and memory speak it too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

_NANOS = 10**9
_MICROS = 10**6
_INT64_MIN = -(1 << 63)
_INT64_MAX = (1 << 63) - 1
_PLAIN_DIGITS = 18
_BINARY_PLAIN_DIGITS = 15
_LONGEST_TEXT = 1024
_LARGEST_EXPONENT = 1000

_FORM = re.compile(
    r"(?P<sign>[+-]?)(?P<zeros>0*)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?P<suffix>[eEinumkKMGTP]*[-+]?[0-9]*)\Z",
    re.ASCII,
)
_DECIMAL_SUFFIXES = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_BY_EXPONENT = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_BY_POWER = ("", *_BINARY_SUFFIXES)

_WRONG_FORM = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_WRONG_NUMBER = "unable to parse numeric part of quantity"
_WRONG_SUFFIX = "unable to parse quantity's suffix"


class QuantitySyntaxError(ValueError):
    """A text that is no quantity; the message is the kubelet's."""


class Format(StrEnum):
    """How a quantity prints: with suffixes of powers of ten, of 1024, or with an exponent."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An exact number. Equality, order and hash go by the number alone.

    `nanos` is the number in billionths. `scale` is the power of ten at which the kubelet
    keeps it as a 64-bit integer, None where it keeps a big decimal. `text` is the original
    text where the kubelet prints that, else empty.
    """

    nanos: int
    format: Format = Format.DECIMAL_SI
    scale: int | None = 0
    text: str = ""

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """The quantity that `text` writes, as in `500m`, `1.5`, `2Gi` or `12e6`.

        Raises QuantitySyntaxError with the kubelet's message. Texts of more than 1024
        characters and exponents above 1000 are refused as well: no resource is that large,
        and the digits would cost more than the rest of the request.
        """
        if len(text) > _LONGEST_TEXT:
            raise QuantitySyntaxError(_WRONG_NUMBER)
        return _parse(text)

    @classmethod
    def from_int(cls, number: int, format: Format = Format.DECIMAL_SI) -> Quantity:  # noqa: A002 - the kubelet's word for it
        """The quantity `number`."""
        return cls(number * _NANOS, format, _plain_scale(number * _NANOS, 0))

    @classmethod
    def from_milli(cls, number: int, format: Format = Format.DECIMAL_SI) -> Quantity:  # noqa: A002 - as above
        """The quantity of `number` thousandths."""
        return cls(number * _MICROS, format, _plain_scale(number * _MICROS, -3))

    def value(self) -> int:
        """The number, rounded away from zero to an integer."""
        return _divide_away(self.nanos, _NANOS)

    def milli_value(self) -> int:
        """The number in thousandths, rounded away from zero to an integer."""
        return _divide_away(self.nanos, _MICROS)

    def as_int64(self) -> int | None:
        """The integer, where the kubelet keeps a plain integer that needs no rounding.

        None for what it keeps in thousandths (even `1000m`) or as a big decimal (`1Pi`).
        """
        if self.scale is None or self.scale < 0:
            return None
        number = self.nanos // _NANOS
        return number if _INT64_MIN <= number <= _INT64_MAX else None

    def is_zero(self) -> bool:
        """Whether the number is 0."""
        return self.nanos == 0

    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.nanos > 0) - (self.nanos < 0)

    def canonical(self) -> str:
        """The text the kubelet prints; parsing it gives an equal quantity."""
        return self.text or _canonical_text(self.nanos, self.format)

    def __str__(self) -> str:
        return self.canonical()

    def __add__(self, other: Quantity) -> Quantity:
        nanos = self.nanos + other.nanos
        scale: int | None
        if self.scale is None or other.scale is None:
            scale = None
        elif other.nanos == 0:
            scale = self.scale
        elif self.nanos == 0:
            scale = other.scale
        else:
            scale = _plain_scale(nanos, min(self.scale, other.scale))
        return Quantity(nanos, other.format if self.nanos == 0 else self.format, scale)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.format, self.scale)

    def __sub__(self, other: Quantity) -> Quantity:
        return self + -other

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: Quantity) -> bool:
        return self.nanos <= other.nanos

    def __gt__(self, other: Quantity) -> bool:
        return self.nanos > other.nanos

    def __ge__(self, other: Quantity) -> bool:
        return self.nanos >= other.nanos


ZERO = Quantity(0)


def is_whole_cpus(quantity: Quantity) -> bool:
    """Whether the CPU Manager takes `quantity` for whole CPUs ("integral" of the CPU terms).

    Both sides are rounded, so 999999u counts as one whole CPU.
    """
    return quantity.value() * 1000 == quantity.milli_value()


@lru_cache(maxsize=4096)
def _parse(text: str) -> Quantity:
    match = _FORM.match(text) if text else None
    if match is None:
        raise QuantitySyntaxError(_WRONG_FORM)
    if text == "0":
        return Quantity(0, text=text)
    suffix = match["suffix"]
    form, exponent = _interpret(suffix)
    negative = match["sign"] == "-"
    whole = match["whole"] or "0"
    fraction = match["fraction"] or ""
    plain = (
        _parse_plain_binary(text, negative, whole, fraction, exponent)
        if form is Format.BINARY_SI
        else _parse_plain_decimal(text, negative, whole, fraction, exponent, form)
    )
    if plain is not None:
        return plain
    if not (match["zeros"] or match["whole"] or fraction):
        raise QuantitySyntaxError(_WRONG_NUMBER)
    return _parse_big(negative, whole, fraction, exponent, form)


def _interpret(suffix: str) -> tuple[Format, int]:
    """The format and the exponent (of ten, or of two for BinarySI) that a suffix stands for."""
    decimal = _DECIMAL_SUFFIXES.get(suffix)
    if decimal is not None:
        return Format.DECIMAL_SI, decimal
    binary = _BINARY_SUFFIXES.get(suffix)
    if binary is not None:
        return Format.BINARY_SI, binary
    if len(suffix) > 1 and suffix[0] in "eE":
        try:
            exponent = int(suffix[1:])
        except ValueError:
            raise QuantitySyntaxError(_WRONG_SUFFIX) from None
        if exponent <= _LARGEST_EXPONENT:
            return Format.DECIMAL_EXPONENT, exponent
    raise QuantitySyntaxError(_WRONG_SUFFIX)


def _parse_plain_decimal(
    text: str, negative: bool, whole: str, fraction: str, exponent: int, form: Format
) -> Quantity | None:
    """A decimal quantity that the kubelet keeps as a 64-bit integer; None if it does not."""
    scale = exponent - len(fraction)
    if len(whole) + len(fraction) > _PLAIN_DIGITS or scale < -9:
        return None
    digits = whole + fraction
    number = -int(digits) if negative else int(digits)
    # Printed as written only where that is already what printing would choose: a power of a
    # thousand, and no zeros to take off at either end.
    kept = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    return Quantity(number * 10 ** (scale + 9), form, scale, text if kept else "")


def _parse_plain_binary(
    text: str, negative: bool, whole: str, fraction: str, exponent: int
) -> Quantity | None:
    """A binary quantity that the kubelet keeps as a 64-bit integer; None if it does not."""
    if fraction or len(whole) + exponent * 3 // 10 + 1 > _BINARY_PLAIN_DIGITS:
        return None
    number = int(whole) << exponent
    # A multiple of eight may be writable with a larger suffix, so it is printed anew.
    kept = int(whole) & 7 != 0
    nanos = (-number if negative else number) * _NANOS
    return Quantity(nanos, Format.BINARY_SI, 0, text if kept else "")


def _parse_big(negative: bool, whole: str, fraction: str, exponent: int, form: Format) -> Quantity:
    """A quantity kept as a big decimal: at least a billionth if not zero; binary ones capped."""
    number = int(whole + fraction)
    places = 9 - len(fraction)
    if form is Format.BINARY_SI:
        number <<= exponent
    else:
        places += exponent
    if places >= 0:
        nanos = number * 10**places
    elif -places > 2 * _LONGEST_TEXT:
        # More places than a text has digits: whatever it is, it rounds up to one billionth.
        nanos = 1 if number else 0
    else:
        nanos = _divide_away(number, 10**-places)
    if form is Format.BINARY_SI:
        nanos = min(nanos, _INT64_MAX * _NANOS)
        if 0 < nanos < _NANOS:
            form = Format.DECIMAL_SI
    return Quantity(-nanos if negative else nanos, form, None)


def _canonical_text(nanos: int, form: Format) -> str:
    """The shortest text with a whole number in front; never loses precision."""
    if nanos == 0:
        return "0"
    if form is Format.BINARY_SI:
        if abs(nanos) < 1024 * _NANOS or nanos % _NANOS:
            form = Format.DECIMAL_SI
        else:
            return _canonical_binary(nanos // _NANOS)
    exponent = -9
    while nanos % 1000 == 0 and (form is Format.DECIMAL_EXPONENT or exponent < 18):
        nanos //= 1000
        exponent += 3
    if form is Format.DECIMAL_SI:
        return f"{nanos}{_DECIMAL_BY_EXPONENT[exponent]}"
    return f"{nanos}e{exponent}" if exponent else str(nanos)


def _canonical_binary(number: int) -> str:
    power = 0
    while number % 1024 == 0 and power < len(_BINARY_BY_POWER) - 1:
        number //= 1024
        power += 1
    return f"{number}{_BINARY_BY_POWER[power]}"


def _divide_away(number: int, divisor: int) -> int:
    """`number` by a positive `divisor`, rounded away from zero."""
    return -(-number // divisor) if number > 0 else number // divisor


def _plain_scale(nanos: int, scale: int) -> int | None:
    """`scale` if the number fits a 64-bit integer there, else None.

    `scale` is not finer than the number needs, and not finer than billionths.
    """
    number = nanos // 10 ** (scale + 9)
    return scale if _INT64_MIN <= number <= _INT64_MAX else None

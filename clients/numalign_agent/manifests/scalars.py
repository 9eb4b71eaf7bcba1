"""Single values of a manifest, checked against the type of their field.

Separate from the walk over objects: these are the rules on values, one function for each type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from numalign.kube.rfc3339 import format_time, parse_time
from numalign.model.quantity import Quantity
from numalign_agent.manifests.schema import Scalar

_QUANTITY = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(.*)\Z", re.DOTALL)


class WrongValue(ValueError):
    """A value does not fit its field; the text says what must stand there."""


def scalar_of(kind: Scalar, value: object) -> object:
    """The value as documents hold it; WrongValue if it is none of that kind."""
    return _READERS[kind](value)


def spelled(text: str) -> str:
    """A quantity in its own spelling: `1000m` stays, `+01.50` is `1.5` (CFG-9)."""
    match = _QUANTITY.match(text)
    if match is None:
        raise WrongValue("must be a quantity")
    sign, whole, fraction, suffix = match.groups()
    number = whole.lstrip("0") or "0"
    rest = (fraction or "").rstrip("0")
    minus = "-" if sign == "-" else ""
    return f"{minus}{number}{'.' + rest if rest else ''}{suffix}"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise WrongValue("must be text")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise WrongValue("holds half of a character") from None
    return value


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise WrongValue("must be true or false")
    return value


def _integer(value: object, bits: int) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise WrongValue("must be an integer")
    bound = 1 << (bits - 1)
    if not -bound <= value < bound:
        raise WrongValue(f"must be between {-bound} and {bound - 1}")
    return value


def _quantity(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise WrongValue("must be a quantity, as text or a number")
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        value = int(value)
    text = str(value).strip()
    try:
        Quantity.parse(text)
    except ValueError as error:
        raise WrongValue(str(error)) from error
    return spelled(text)


def _time(value: object) -> str:
    try:
        return format_time(parse_time(_text(value)))
    except ValueError as error:
        raise WrongValue(str(error)) from error


def _int_or_text(value: object) -> int | str:
    return value if isinstance(value, str) else _integer(value, 32)


_READERS: Mapping[Scalar, Callable[[object], object]] = {
    Scalar.TEXT: _text,
    Scalar.BOOLEAN: _boolean,
    Scalar.INT32: lambda value: _integer(value, 32),
    Scalar.INT64: lambda value: _integer(value, 64),
    Scalar.QUANTITY: _quantity,
    Scalar.TIME: _time,
    Scalar.INT_OR_TEXT: _int_or_text,
}

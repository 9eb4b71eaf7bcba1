"""What a Go type is to a state file: a shape that decodes, prints and encodes its values.

A file layout is written down once, as a shape, and gives the reader, the checksum text and
the writer. This module holds the protocol of all shapes and the scalar ones.

Decoding follows Go's rules: `null` leaves a scalar or a struct as it was; a value of the wrong
kind is noted, skipped, and the rest is still decoded. The notes decide afterwards
whether the attempt failed, because the CPU manager uses parts of a failed attempt (CPU-27).
"""

from __future__ import annotations

import base64
import binascii
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

from numalign.kubelet_files.errors import UndecodableCheckpoint
from numalign.kubelet_files.go_dump import NIL, dump_list
from numalign.kubelet_files.go_json import Json, JsonNumber, quote_json, text_of

T = TypeVar("T")

_INTEGER_LITERAL = re.compile(r"-?[0-9]+", re.ASCII)


class Faults:
    """What went wrong while one document was decoded; only the first fault is kept.

    After `stop` nothing more is decoded; after `note` the rest of the document still is.
    """

    __slots__ = ("first", "stopped")

    def __init__(self) -> None:
        self.first: str | None = None
        self.stopped = False

    def note(self, text: str) -> None:
        """A value does not fit its place."""
        if self.first is None:
            self.first = text

    def stop(self, text: str) -> None:
        """A type with a decoder of its own refused its value, which ends the decoding."""
        self.note(text)
        self.stopped = True

    def check(self) -> None:
        """Raise UndecodableCheckpoint if there was any fault."""
        if self.first is not None:
            raise UndecodableCheckpoint(f"json: {self.first}")


class Shape(ABC, Generic[T]):
    """One Go type, held in Python as `T`."""

    @abstractmethod
    def zero(self) -> T:
        """The value of a member that is not in the file."""

    @abstractmethod
    def decode(self, raw: Json, current: T, faults: Faults) -> T:
        """The value after reading `raw` over `current`; what does not fit goes to `faults`."""

    @abstractmethod
    def dump(self, value: T) -> str:
        """The printed form that goes into a checksum (MEM-69)."""

    @abstractmethod
    def encode(self, value: T) -> str:
        """The JSON text, without spaces."""

    def is_empty(self, value: T) -> bool:
        """Whether a member marked `omit_empty` is left out; a struct never is."""
        return not value


class Text(Shape[str]):
    """A Go string, or a type based on it."""

    def zero(self) -> str:
        """See Shape."""
        return ""

    def decode(self, raw: Json, current: str, faults: Faults) -> str:
        """See Shape."""
        if isinstance(raw, str):
            return text_of(raw)
        if raw is not None:
            faults.note(f"{kind_of(raw)} where a string belongs")
        return current

    def dump(self, value: str) -> str:
        """See Shape."""
        return value

    def encode(self, value: str) -> str:
        """See Shape."""
        return quote_json(value)


@dataclass(frozen=True)
class Integer(Shape[int]):
    """A Go integer between `low` and `high`, both included."""

    low: int
    high: int

    def zero(self) -> int:
        """See Shape."""
        return 0

    def decode(self, raw: Json, current: int, faults: Faults) -> int:
        """See Shape."""
        if isinstance(raw, JsonNumber):
            if _INTEGER_LITERAL.fullmatch(raw.text) and not self._is_signed_unsigned(raw.text):
                value = int(raw.text)
                if self.low <= value <= self.high:
                    return value
            faults.note(f"number {raw.text} where an integer of {self.low}..{self.high} belongs")
        elif raw is not None:
            faults.note(f"{kind_of(raw)} where a number belongs")
        return current

    def dump(self, value: int) -> str:
        """See Shape."""
        return str(value)

    def encode(self, value: int) -> str:
        """See Shape."""
        return str(value)

    def _is_signed_unsigned(self, literal: str) -> bool:
        # Go's unsigned parser takes no sign, not even that of -0.
        return self.low == 0 and literal.startswith("-")


class Bytes(Shape[bytes | None]):
    """A Go byte slice: base64 text in JSON, decimal numbers in print; None is a null slice."""

    def zero(self) -> bytes | None:
        """See Shape."""
        return None

    def decode(self, raw: Json, current: bytes | None, faults: Faults) -> bytes | None:
        """See Shape."""
        if raw is None:
            return None
        if isinstance(raw, str):
            try:
                # Go's decoder skips line ends inside the text.
                return base64.b64decode(raw.replace("\r", "").replace("\n", ""), validate=True)
            except (binascii.Error, ValueError) as error:
                faults.note(f"illegal base64 data: {error}")
        elif isinstance(raw, list):
            return bytes(UINT8.decode(element, 0, faults) for element in raw)
        else:
            faults.note(f"{kind_of(raw)} where base64 text belongs")
        return current

    def dump(self, value: bytes | None) -> str:
        """See Shape."""
        return NIL if value is None else dump_list(str(byte) for byte in value)

    def encode(self, value: bytes | None) -> str:
        """See Shape."""
        return "null" if value is None else f'"{base64.b64encode(value).decode()}"'


def kind_of(raw: Json) -> str:
    """The kind of a JSON value, for a fault's text."""
    if isinstance(raw, str):
        return "a string"
    if isinstance(raw, bool):
        return "a truth value"
    if isinstance(raw, JsonNumber):
        return "a number"
    if isinstance(raw, list):
        return "an array"
    return "null" if raw is None else "an object"


TEXT = Text()
BYTES = Bytes()
INT = Integer(-(2**63), 2**63 - 1)
UINT8 = Integer(0, 2**8 - 1)
UINT64 = Integer(0, 2**64 - 1)

"""Decisions taken from the bytes that an engine made up, so that it can steer them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Reads bytes from the front; when they run out, every further one is zero."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def __bool__(self) -> bool:
        return self._position < len(self._data)

    def byte(self) -> int:
        """A number below 256."""
        position = self._position
        self._position = position + 1
        return self._data[position] if position < len(self._data) else 0

    def below(self, bound: int) -> int:
        """A number below `bound`, which is at most 65536."""
        number = self.byte()
        return (number if bound <= 256 else number << 8 | self.byte()) % bound

    def of(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.below(len(options))]

    def text(self) -> str:
        """Up to 255 bytes as text; bytes that are no text become surrogates."""
        length = self.byte()
        piece = self._data[self._position : self._position + length]
        self._position += length
        return piece.decode("utf-8", "surrogateescape")

    def rest(self) -> bytes:
        """Everything that is left."""
        piece = self._data[self._position :]
        self._position = len(self._data)
        return piece

"""The shapes that hold other shapes in a list, a map, or behind a pointer.

None stands for Go's null slice, map or pointer, which prints and encodes unlike an empty one.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from numalign.kubelet_files.go_dump import NIL, POINTER, dump_list, dump_map
from numalign.kubelet_files.go_json import Json, JsonObject, quote_json
from numalign.kubelet_files.go_shape import INT, Faults, Shape, kind_of

T = TypeVar("T")
K = TypeVar("K", str, int)

_INTEGER_KEY = re.compile(r"[+-]?[0-9]+", re.ASCII)


@dataclass(frozen=True)
class ListOf(Shape[tuple[T, ...] | None]):
    """A Go slice of `element`."""

    element: Shape[T]

    def zero(self) -> tuple[T, ...] | None:
        """See Shape."""
        return None

    def decode(
        self, raw: Json, current: tuple[T, ...] | None, faults: Faults
    ) -> tuple[T, ...] | None:
        """See Shape."""
        if raw is None:
            return None
        if not isinstance(raw, list):
            faults.note(f"{kind_of(raw)} where an array belongs")
            return current
        elements = []
        for member in raw:
            value = self.element.decode(member, self.element.zero(), faults)
            if faults.stopped:
                break
            elements.append(value)
        return tuple(elements)

    def dump(self, value: tuple[T, ...] | None) -> str:
        """See Shape."""
        return NIL if value is None else dump_list(self.element.dump(v) for v in value)

    def encode(self, value: tuple[T, ...] | None) -> str:
        """See Shape."""
        if value is None:
            return "null"
        return "[" + ",".join(self.element.encode(v) for v in value) + "]"


class Key(ABC, Generic[K]):
    """How the keys of a map are spelled."""

    @abstractmethod
    def parse(self, text: str) -> K | None:
        """The key, or None where the spelling does not fit."""


class TextKey(Key[str]):
    """Keys that are texts."""

    def parse(self, text: str) -> str | None:
        """See Key."""
        return text


class IntKey(Key[int]):
    """Keys that are 64-bit integers, spelled in decimal."""

    def parse(self, text: str) -> int | None:
        """See Key."""
        if _INTEGER_KEY.fullmatch(text):
            value = int(text)
            if INT.low <= value <= INT.high:
                return value
        return None


@dataclass(frozen=True)
class MapOf(Shape[Mapping[K, T] | None]):
    """A Go map from `key` to `value`.

    Keys print in numeric or byte order and are encoded in byte order of their text. A text's
    code point order is the byte order of its UTF-8 form.
    """

    key: Key[K]
    value: Shape[T]

    def zero(self) -> Mapping[K, T] | None:
        """See Shape."""
        return None

    def decode(
        self, raw: Json, current: Mapping[K, T] | None, faults: Faults
    ) -> Mapping[K, T] | None:
        """See Shape. Members are added to those of `current`; a repeated key: the last wins."""
        if raw is None:
            return None
        if not isinstance(raw, JsonObject):
            faults.note(f"{kind_of(raw)} where an object belongs")
            return current
        entries = dict(current or {})
        for name, member in raw.members:
            value = self.value.decode(member, self.value.zero(), faults)
            if faults.stopped:
                break
            key = self.key.parse(name)
            if key is None:
                faults.note(f"key {name} where an integer belongs")
            else:
                entries[key] = value
        return entries

    def dump(self, value: Mapping[K, T] | None) -> str:
        """See Shape."""
        if value is None:
            return NIL
        return dump_map((str(key), self.value.dump(value[key])) for key in sorted(value))

    def encode(self, value: Mapping[K, T] | None) -> str:
        """See Shape."""
        if value is None:
            return "null"
        members = sorted((str(key), self.value.encode(v)) for key, v in value.items())
        return "{" + ",".join(f"{quote_json(key)}:{text}" for key, text in members) + "}"


@dataclass(frozen=True)
class PointerTo(Shape[T | None]):
    """A Go pointer to `target`."""

    target: Shape[T]

    def zero(self) -> T | None:
        """See Shape."""
        return None

    def decode(self, raw: Json, current: T | None, faults: Faults) -> T | None:
        """See Shape."""
        if raw is None:
            return None
        return self.target.decode(raw, self.target.zero() if current is None else current, faults)

    def dump(self, value: T | None) -> str:
        """See Shape."""
        return NIL if value is None else POINTER + self.target.dump(value)

    def encode(self, value: T | None) -> str:
        """See Shape."""
        return "null" if value is None else self.target.encode(value)


TEXT_KEY = TextKey()
INT_KEY = IntKey()

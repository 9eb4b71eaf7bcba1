"""The shape of a Go struct, held as a frozen dataclass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from numalign.kubelet_files.go_dump import dump_struct
from numalign.kubelet_files.go_json import Json, JsonObject, quote_json
from numalign.kubelet_files.go_shape import Faults, Shape, kind_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One field: its JSON `key`, our `attribute`, and its Go `name` and type `kind`.

    Name and kind are only printed; they are empty in structs that no checksum prints.
    """

    name: str = ""
    kind: str = ""
    key: str
    attribute: str
    shape: Shape[Any]
    omit_empty: bool = False


@dataclass(frozen=True)
class StructOf(Shape[T]):
    """A Go struct with `members` in declaration order, held as the dataclass `record`."""

    record: type[T]
    members: tuple[Member, ...]

    def zero(self) -> T:
        """See Shape."""
        return self.record(**{m.attribute: m.shape.zero() for m in self.members})

    def decode(self, raw: Json, current: T, faults: Faults) -> T:
        """See Shape. A key fits a member also in other letter case; unknown keys are skipped."""
        if raw is None:
            return current
        if not isinstance(raw, JsonObject):
            faults.note(f"{kind_of(raw)} where an object belongs")
            return current
        values = {m.attribute: getattr(current, m.attribute) for m in self.members}
        for key, member_raw in raw.members:
            member = self._by_key.get(key) or self._by_folded_key.get(key.lower())
            if member is None:
                continue
            values[member.attribute] = member.shape.decode(
                member_raw, values[member.attribute], faults
            )
            if faults.stopped:
                break
        return self.record(**values)

    def dump(self, value: T) -> str:
        """See Shape."""
        return dump_struct(
            (m.name, m.kind, m.shape.dump(getattr(value, m.attribute))) for m in self.members
        )

    def encode(self, value: T) -> str:
        """See Shape."""
        texts = []
        for m in self.members:
            member = getattr(value, m.attribute)
            if not (m.omit_empty and m.shape.is_empty(member)):
                texts.append(f"{quote_json(m.key)}:{m.shape.encode(member)}")
        return "{" + ",".join(texts) + "}"

    @cached_property
    def _by_key(self) -> Mapping[str, Member]:
        return {m.key: m for m in self.members}

    @cached_property
    def _by_folded_key(self) -> Mapping[str, Member]:
        return {m.key.lower(): m for m in self.members}

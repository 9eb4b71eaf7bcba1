"""How each message of the pod looks in Kubernetes' JSON, worked out once per message type.

Separate so that reading and writing JSON follow one plan. A plan comes from the message's
descriptor; what Kubernetes writes in a way of its own (quantities, times, and structs that
stand inline) is named here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from numalign.kube.core.v1 import core_pb2

_INLINE = frozenset({"numalign.kube.core.v1.EphemeralContainer.ephemeral_container_common"})


class Kind(Enum):
    """What one value of a field looks like in JSON."""

    TEXT = auto()
    INTEGER = auto()
    BOOLEAN = auto()
    QUANTITY = auto()
    TIME = auto()
    OBJECT = auto()


@dataclass(frozen=True, slots=True)
class FieldPlan:
    """One field: its names, the kind of its values, and how many there are.

    `has_presence` says whether an absent value differs from a zero.
    `lowest` and `highest` bound an integer. `message` is the type of an object.
    """

    name: str
    json_name: str
    kind: Kind
    is_list: bool = False
    is_map: bool = False
    is_inline: bool = False
    has_presence: bool = False
    lowest: int = 0
    highest: int = 0
    message: Descriptor | None = None


_SCALARS = {
    FieldDescriptor.TYPE_STRING: Kind.TEXT,
    FieldDescriptor.TYPE_INT32: Kind.INTEGER,
    FieldDescriptor.TYPE_INT64: Kind.INTEGER,
    FieldDescriptor.TYPE_BOOL: Kind.BOOLEAN,
}
_MESSAGES = {
    core_pb2.Quantity.DESCRIPTOR.full_name: Kind.QUANTITY,
    core_pb2.Time.DESCRIPTOR.full_name: Kind.TIME,
}


@cache
def plan_of(message: Descriptor) -> Mapping[str, FieldPlan]:
    """The fields of a message type by JSON name, in order of field number.

    An inline field is listed under its own name, which is no JSON key.
    """
    fields = sorted(message.fields, key=lambda field: field.number)
    return {field.json_name: _plan_field(field) for field in fields}


def _plan_field(field: FieldDescriptor) -> FieldPlan:
    entry = field.message_type
    is_map = entry is not None and entry.GetOptions().map_entry
    value = field if entry is None or not is_map else entry.fields_by_name["value"]
    message = value.message_type
    bits = 31 if value.type == FieldDescriptor.TYPE_INT32 else 63
    return FieldPlan(
        name=field.name,
        json_name=field.json_name,
        kind=_SCALARS[value.type]
        if message is None
        else _MESSAGES.get(message.full_name, Kind.OBJECT),
        is_list=field.is_repeated and not is_map,
        is_map=is_map,
        is_inline=field.full_name in _INLINE,
        has_presence=field.has_presence,
        lowest=-(1 << bits),
        highest=(1 << bits) - 1,
        message=message,
    )

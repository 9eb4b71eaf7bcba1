"""The fields of a v1.Pod and their types, as data.

Separate from what walks over a pod, so that reading, filling in, comparing and showing follow
one table. `pod_schema.json` holds it: type by type, each field's type as Go would write it. The
one thing left out is `metadata.managedFields`, which no manifest has a use for.

    string bool int32 int64       a value; the zero value is the same as none
    quantity time intOrString
    Type                          an object of that type; an empty one is the same as none
    *...                          none differs from zero, or from an empty object
    []... {}...                   a list, or a mapping from text
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files


class Scalar(StrEnum):
    """The types that are no objects."""

    TEXT = "string"
    BOOLEAN = "bool"
    INT32 = "int32"
    INT64 = "int64"
    QUANTITY = "quantity"
    TIME = "time"
    INT_OR_TEXT = "intOrString"


@dataclass(frozen=True, slots=True)
class FieldType:
    """One field. `scalar` is None for objects, whose type is `object_type`.

    `keeps_zero`: a zero or an empty object says something else than no value.
    """

    scalar: Scalar | None
    object_type: str = ""
    is_list: bool = False
    is_map: bool = False
    keeps_zero: bool = False


@cache
def fields_of(object_type: str) -> Mapping[str, FieldType]:
    """The fields of one type by name; KeyError for a type that no pod holds."""
    return {name: _field_type(text) for name, text in _table()[object_type].items()}


@cache
def object_types() -> tuple[str, ...]:
    """The names of all types."""
    return tuple(_table())


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    text = files(__package__).joinpath("pod_schema.json").read_text(encoding="utf-8")
    table: Mapping[str, Mapping[str, str]] = json.loads(text)
    return table


def _field_type(text: str) -> FieldType:
    keeps_zero = text.startswith("*")
    inner = text.removeprefix("*")
    is_list, is_map = inner.startswith("[]"), inner.startswith("{}")
    word = inner[2:] if is_list or is_map else inner
    is_object = word[0].isupper()
    return FieldType(
        scalar=None if is_object else Scalar(word),
        object_type=word if is_object else "",
        is_list=is_list,
        is_map=is_map,
        keeps_zero=keeps_zero,
    )

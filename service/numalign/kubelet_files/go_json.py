"""JSON text as the kubelet's decoder reads it and as its encoder writes it.

Separate from the shapes because it knows text only. Objects keep their members in order and
with repetitions, and numbers keep their spelling, since both decide how Go decodes a value.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TypeAlias

from numalign.kubelet_files.errors import UndecodableCheckpoint

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_HTML_SENSITIVE = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


@dataclass(frozen=True, slots=True)
class JsonNumber:
    """A number as it is spelled."""

    text: str


@dataclass(frozen=True, slots=True)
class JsonObject:
    """An object: its members in order of appearance, repeated names included."""

    members: tuple[tuple[str, Json], ...]


Json: TypeAlias = "str | bool | JsonNumber | JsonObject | list[Json] | None"


def parse_json(text: str) -> Json:
    """Parse one JSON value with nothing but white space around it.

    Raises UndecodableCheckpoint where the text is not JSON.
    """
    try:
        value: Json = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise UndecodableCheckpoint(f"json: {error}") from error
    return value


def quote_json(text: str) -> str:
    """The string literal that Go's encoder writes: UTF-8, with `<`, `>`, `&` escaped."""
    return json.dumps(_well_formed(text), ensure_ascii=False).translate(_HTML_SENSITIVE)


def text_of(literal: str) -> str:
    """A decoded string; a surrogate without its partner becomes U+FFFD, as in Go."""
    return _well_formed(literal)


def _well_formed(text: str) -> str:
    return _LONE_SURROGATE.sub("\ufffd", text)


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"invalid number {name}")


def _object(pairs: list[tuple[str, Json]]) -> JsonObject:
    return JsonObject(tuple((_well_formed(name), value) for name, value in pairs))


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=JsonNumber,
    parse_float=JsonNumber,
    parse_constant=_refuse_constant,
)

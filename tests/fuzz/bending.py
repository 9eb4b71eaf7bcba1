"""Documents that are almost right: a good one, with a few things in it changed.

Bytes made up at random are refused by the first decoder. What lies behind it is reached with
documents whose structure is whole and whose values are odd.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from tests.fuzz.choices import Choices

MOST_EDITS = 4
MOST_BYTES = 160
"""More bytes than that are rarely asked for."""
DEEP: list[Any] = []
for _ in range(60):
    DEEP = [DEEP]

ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    63,
    64,
    1 << 20,
    1 << 31,
    (1 << 63) - 1,
    1 << 63,
    1 << 64,
    -(1 << 63) - 1,
    10**400,
    0.0,
    -0.0,
    0.5,
    1e22,
    1e308,
    float("inf"),
    float("nan"),
    "",
    " ",
    "0",
    "-1",
    "0-3",
    "3-0",
    "0,0",
    "1.5",
    "1Gi",
    "-1Ki",
    "1e400",
    "9" * 30,
    "1m",
    "500ms",
    "10%",
    "none",
    "static",
    "Static",
    "\x00",
    "\ud800",
    "\u0663",
    "\u00e9" * 300,
    "a/b/c",
    "../../x",
    [],
    {},
    [None],
    [[]],
    {"": {}},
    {"a": "b"},
    DEEP,
)
"""What stands in for a value."""

ODD_KEYS: tuple[Any, ...] = (1, True, None, 1.5, "", "a", "\ud800", "cpu", "memory", "x" * 300)
"""Keys that a mapping of YAML can have."""


def bent(seeds: Sequence[str], data: bytes) -> Any:
    """The JSON document that the first bytes choose, with the changes that the others ask for."""
    choices = Choices(data)
    document = json.loads(seeds[choices.below(len(seeds))])
    for _ in range(MOST_EDITS):
        if not choices:
            break
        document = _edit(document, choices)
    return document


def _edit(document: Any, choices: Choices) -> Any:
    """Change one place; the document itself where it is no container."""
    if not _holds(document):
        return _value(choices)
    place = document
    while True:
        key = choices.of(_keys(place))
        if not _holds(place[key]) or choices.byte() < 40:
            break
        place = place[key]
    match choices.below(6):
        case 0:
            del place[key]
        case 1 if isinstance(place, dict):
            place[choices.of(ODD_KEYS)] = place[key]
        case 2 if isinstance(place, list):
            place.append(place[key])
        case 3 if isinstance(place, dict):
            place[choices.text()] = _value(choices)
        case _:
            place[key] = _value(choices)
    return document


def _value(choices: Choices) -> Any:
    number = choices.byte()
    if number < len(ODD_VALUES):
        return deepcopy(ODD_VALUES[number])
    return choices.text() if number & 1 else number << choices.byte()


def _holds(value: Any) -> bool:
    return isinstance(value, dict | list) and len(value) > 0


def _keys(place: Any) -> Sequence[Any]:
    return tuple(place) if isinstance(place, dict) else range(len(place))


def starts(seeds: Sequence[str]) -> tuple[bytes, ...]:
    """Inputs that choose each of the documents and change nothing, or one thing."""
    wide = len(seeds) > 256
    heads = [
        number.to_bytes(2, "big") if wide else bytes((number,)) for number in range(len(seeds))
    ]
    return tuple(heads) + tuple(head + bytes((0, 50, 1, 50, 4, 9)) for head in heads)

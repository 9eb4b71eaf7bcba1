"""Comparing what was recorded with what was replayed. Pure.

Separate from excuses: here every difference counts, whoever may forgive it later. Paths are
those of the recordings, jq-like: `.steps[3].expect.containers.app.cpus`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeGuard


class Missing(Enum):
    """Stands for a value that one of the two sides does not have."""

    MISSING = "nothing"


MISSING: Final = Missing.MISSING


@dataclass(frozen=True, slots=True)
class Cause:
    """A rule of the specification that makes a safe node differ, and how, in a sentence."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the replayed value is not the recorded one; MISSING where a side has none.

    `cause` names why it may differ, where somebody knows.
    """

    path: str
    recorded: object
    replayed: object
    cause: Cause | None = None

    def __str__(self) -> str:
        return f"{self.path}: {_text(self.recorded)} recorded, {_text(self.replayed)} replayed"


def differences(recorded: object, replayed: object, path: str = "") -> Iterator[Difference]:
    """Every difference, in the order of the recording; `path` is where the values stand.

    Objects are compared key by key, lists of equal length item by item. Lists of ids (of
    texts), and lists of different length, differ as a whole.
    """
    if isinstance(recorded, dict) and isinstance(replayed, dict):
        for key in (*recorded, *(key for key in replayed if key not in recorded)):
            yield from differences(
                recorded.get(key, MISSING), replayed.get(key, MISSING), f"{path}.{key}"
            )
    elif _is_list_of_items(recorded) and _is_list_of_items(replayed):
        if len(recorded) != len(replayed):
            yield Difference(path, recorded, replayed)
            return
        for index, (left, right) in enumerate(zip(recorded, replayed, strict=True)):
            yield from differences(left, right, f"{path}[{index}]")
    elif recorded != replayed:
        yield Difference(path, recorded, replayed)


def _is_list_of_items(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list) and not any(isinstance(item, str) for item in value)


def _text(value: object) -> str:
    if value is MISSING:
        return MISSING.value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

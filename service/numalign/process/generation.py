"""Which configuration a service runs, as a number that counts up at every change.

It counts over restarts too: the number is kept in the state file, with a fingerprint of the
settings that decide about pods.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Self

from numalign.config.settings import Settings
from numalign.store.database import Database
from numalign.store.node_facts import NodeFacts

DECIDING = (
    "topology",
    "cpu",
    "memory",
    "gates",
    "devices",
    "device_plugins",
    "placement",
    "providers",
)
"""The settings that decide about pods. `compatibility` needs a restart, and counts as well."""


class Generation:
    """The number of the configuration in force. Open it with `Generation.open`."""

    def __init__(self, facts: NodeFacts, number: int) -> None:
        self._facts = facts
        self.number = number

    @classmethod
    async def open(cls, database: Database, settings: Settings) -> Self:
        """The number at a start with `settings` over this state file."""
        facts = NodeFacts(database)
        return cls(facts, await facts.generation_of(fingerprint(settings)))

    async def change(self, settings: Settings) -> int:
        """The number from now on, with `settings` in force."""
        self.number = await self._facts.generation_of(fingerprint(settings))
        return self.number


def fingerprint(settings: Settings) -> int:
    """63 bits that differ, but for chance, where settings decide differently about pods."""
    names = (*DECIDING, "compatibility")
    text = "\n".join(f"{name}={_text(getattr(settings, name))}" for name in names)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def _text(value: object) -> str:
    """`value` in one way whatever the order in which it was written."""
    if isinstance(value, Enum):
        return str(value.value)
    if is_dataclass(value) and not isinstance(value, type):
        return _text({field.name: getattr(value, field.name) for field in fields(value)})
    if isinstance(value, Mapping):
        items = sorted((str(key), _text(inner)) for key, inner in value.items())
        return "{" + ",".join(f"{key}:{text}" for key, text in items) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_text, value)) + "]"
    return str(value)

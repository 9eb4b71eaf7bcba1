"""From what providers answered to one list of hints per resource.

Separate from the merge because here the five absences (no mapping, empty mapping, no list,
empty list, no affinity) get their meaning, and nowhere else. Rule TM-20.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from numalign.model.hint import FamilyList, ProviderHints, TopologyHint

StatedList: TypeAlias = tuple[TopologyHint, ...] | FamilyList
"""A list that says something: never nil, never empty."""

NO_PREFERENCE = (TopologyHint(None, True),)
"""The list of a provider or resource that does not mind where."""

NOWHERE = (TopologyHint(None, False),)
"""The list of a resource that cannot be placed: it never lets a result be preferred."""


def normalise(answers: Iterable[ProviderHints]) -> list[StatedList]:
    """One non-empty list per resource, in the order of `answers` (TM-20)."""
    lists: list[StatedList] = []
    for hints in answers:
        if not hints:
            lists.append(NO_PREFERENCE)
            continue
        for hint_list in hints.values():
            if hint_list is None:
                lists.append(NO_PREFERENCE)
            else:
                lists.append(hint_list or NOWHERE)
    return lists

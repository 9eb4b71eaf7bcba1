"""Revisions of the node: which of two came later, and which cannot be compared.

A revision counts the changes of one record of admitted pods. A record that was lost is followed
by another one, whose count must not be taken for a continuation of the first: whoever remembers
revision 900 of the lost one has seen nothing of the new one, even when that has come to 950. So
the upper bits of a revision say of which record it is. They are drawn at random, since who has
lost its record does not know its number either.
"""

from __future__ import annotations

RECORD_BITS = 20
CHANGE_BITS = 32
"""Together they fit into the integers that JSON and JavaScript can hold."""


def first_of_record(number: int) -> int:
    """The revision before the first change of record `number`; below 2 ** RECORD_BITS, not 0."""
    if not 0 < number < 1 << RECORD_BITS:
        raise ValueError(f"record number {number} is not between 1 and {(1 << RECORD_BITS) - 1}")
    return number << CHANGE_BITS


def same_record(one: int, other: int) -> bool:
    """Whether two revisions count changes of the same record."""
    return one >> CHANGE_BITS == other >> CHANGE_BITS


def is_after(revision: int, seen: int) -> bool:
    """Whether a change of this revision came after `seen`, of the same record."""
    return same_record(revision, seen) and revision > seen


def has_seen(seen: int, revision: int) -> bool:
    """Whether who has seen everything up to `seen` has seen this revision; 0 is none."""
    return not revision or (same_record(seen, revision) and seen >= revision)


def latest(seen: int, told: int) -> int:
    """The later one of two; where they are of two records, what is told, for the other is gone."""
    return max(seen, told) if same_record(seen, told) else told

"""The pods that wait for a decision, and whose turn is next (ADD-1, DES-11). Pure.

Pods that were admitted before go first, in the order of their first admission; the others
follow in the order in which they came. A pod that was put off keeps its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from heapq import nsmallest


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """One pod. `number` is its place; times are seconds of one clock.

    `preempted` are UIDs of pods that were ended for it. `since` is when it came. `for_room`: it
    was put off because pods that are leaving still hold what it may need.
    """

    uid: str
    number: int
    since: float
    not_before: float = 0.0
    failures: int = 0
    for_room: bool = False
    preempted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WaitingList:
    """Everybody who waits, by UID. `next_number` is the place of the next one who comes."""

    waiting: Mapping[str, Waiting]
    next_number: int = 0

    def added(self, uids: Iterable[str], now: float) -> WaitingList:
        """With more pods at the end; one that waits already keeps its place."""
        waiting = dict(self.waiting)
        number = self.next_number
        for uid in uids:
            if uid not in waiting:
                waiting[uid] = Waiting(uid=uid, number=number, since=now)
                number += 1
        return WaitingList(waiting, number)

    def without(self, uid: str) -> WaitingList:
        """Without one pod; one that does not wait is no mistake."""
        rest = {other: entry for other, entry in self.waiting.items() if other != uid}
        return WaitingList(rest, self.next_number)

    def changed(self, entry: Waiting) -> WaitingList:
        """With another value for one that waits."""
        return WaitingList({**self.waiting, entry.uid: entry}, self.next_number)

    def woken(self, uid: str) -> WaitingList:
        """With one pod asked about as soon as it is its turn, though it was put off."""
        entry = self.waiting.get(uid)
        return self if entry is None else self.changed(replace(entry, not_before=0.0))

    def room_made(self) -> WaitingList:
        """With those who wait for room asked about again."""
        waiting = {
            uid: replace(entry, not_before=0.0, for_room=False) if entry.for_room else entry
            for uid, entry in self.waiting.items()
        }
        return WaitingList(waiting, self.next_number)

    def due(
        self, ranks: Mapping[str, int], now: float, *, hold_new: bool, most: int
    ) -> list[Waiting]:
        """Whose turns are next, in order, at most so many.

        `ranks` order the pods that were admitted before. `hold_new`: the others have to wait.
        """
        due = (
            entry
            for entry in self.waiting.values()
            if entry.not_before <= now and (entry.uid in ranks or not hold_new)
        )
        return nsmallest(most, due, key=lambda entry: _place(entry, ranks))

    def next_due(self, now: float) -> float | None:
        """When the first of those who were put off is due; None if nobody was."""
        later = (e.not_before for e in self.waiting.values() if e.not_before > now)
        return min(later, default=None)


NOBODY = WaitingList({})


def _place(entry: Waiting, ranks: Mapping[str, int]) -> tuple[bool, int, int]:
    rank = ranks.get(entry.uid)
    return (rank is None, rank or 0, entry.number)

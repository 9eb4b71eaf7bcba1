"""Where each decision of the journal is, and what it is asked for by, in a few bytes of memory.

Separate from the files, which know nothing of what they hold, and from the journal, which reads a
decision only once it is known to be wanted. The index is in no file: it is made from what they hold
at the start, so that the files of every version do.
"""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from google.protobuf.timestamp_pb2 import Timestamp

from numalign.admission.journal.segments import Kept, Place
from numalign.v1 import decisions_pb2 as dc


@dataclass(frozen=True, slots=True)
class Indexed:
    """A decision as the index knows it: where it is, and what later entries say of it."""

    place: Place
    number: int
    last_time: int
    times: int

    def brought_up_to_date(self, record: dc.DecisionRecord) -> dc.DecisionRecord:
        """The decision as it was written, with when and how often it was made by now."""
        record.last_time.FromNanoseconds(self.last_time)
        record.times = self.times
        return record


class DecisionIndex:
    """The decisions of two files, in order of number. Times are nanoseconds since the epoch.

    Pods are known by checksums of their UID and names, so what is found by a pod has to be looked
    at; all else is exact.
    """

    def __init__(self, kept: Iterable[Kept] = ()) -> None:
        """The index of what the files hold."""
        self._numbers = array("Q")
        self._positions = array("Q")
        self._first_times = array("q")
        self._last_times = array("q")
        self._times = array("I")
        self._verdicts = array("i")
        self._reasons = array("I")
        self._owners = array("I")
        self._uids = array("I")
        self._full_names = array("I")
        self._names = array("I")
        self._texts: dict[str, int] = {}
        self._older = 0
        in_older = True
        for one in kept:
            if in_older and not one.place.older:
                in_older, self._older = False, len(self)
            self.note(one.entry, one.place.position)
        if in_older:
            self._older = len(self)

    def __len__(self) -> int:
        """How many decisions there are."""
        return len(self._numbers)

    @property
    def oldest(self) -> int:
        """The number of the first decision; 0 if there is none."""
        return self._numbers[0] if self._numbers else 0

    @property
    def newest(self) -> int:
        """The number of the last decision; 0 if there is none."""
        return self._numbers[-1] if self._numbers else 0

    @property
    def kept_since(self) -> int | None:
        """When the first decision was made first; None if there is none."""
        return self._first_times[0] if self._first_times else None

    def note(self, entry: dc.JournalEntry, position: int) -> None:
        """What was written to the newer file at this position.

        A number that is not above those before it is of no decision of this journal.
        """
        if entry.HasField("again"):
            row = self._row_of(entry.again.number)
            if row is not None:
                self._last_times[row] = entry.again.last_time.ToNanoseconds()
                self._times[row] = entry.again.times
        elif entry.HasField("decision") and entry.decision.number > self.newest:
            self._add(entry.decision, position)

    def let_go_of_older(self) -> None:
        """The newer file has taken the place of the older one."""
        for column in self._columns():
            del column[: self._older]
        self._older = len(self)

    def numbered(self, number: int) -> Indexed | None:
        """The decision of this number."""
        row = self._row_of(number)
        return None if row is None else self._at(row)

    def found(self, wanted: dc.DecisionFilter) -> list[Indexed]:
        """The decisions that the filter lets through, the newest first; see above about pods."""
        rows: Iterable[int] = range(len(self))
        if wanted.pod:
            checksum = _checksum(wanted.pod)
            columns = zip(self._uids, self._full_names, self._names, strict=True)
            rows = [row for row, known in enumerate(columns) if checksum in known]
        if wanted.verdicts:
            verdicts = set(wanted.verdicts)
            rows = [row for row in rows if self._verdicts[row] in verdicts]
        if wanted.reasons:
            reasons = {self._texts.get(reason) for reason in wanted.reasons}
            rows = [row for row in rows if self._reasons[row] in reasons]
        if wanted.owner:
            owner = self._texts.get(wanted.owner)
            rows = [row for row in rows if self._owners[row] == owner]
        if wanted.HasField("since"):
            since = _nanoseconds(wanted.since)
            rows = [row for row in rows if self._last_times[row] >= since]
        if wanted.HasField("until"):
            until = _nanoseconds(wanted.until)
            rows = [row for row in rows if self._first_times[row] < until]
        newest_first = sorted(rows, key=lambda row: (self._last_times[row], row), reverse=True)
        return list(map(self._at, newest_first))

    def _add(self, record: dc.DecisionRecord, position: int) -> None:
        self._numbers.append(record.number)
        self._positions.append(position)
        self._first_times.append(record.first_time.ToNanoseconds())
        self._last_times.append(record.last_time.ToNanoseconds())
        self._times.append(record.times)
        self._verdicts.append(record.verdict)
        self._reasons.append(self._texts.setdefault(record.reason, len(self._texts)))
        self._owners.append(self._texts.setdefault(record.owner, len(self._texts)))
        self._uids.append(_checksum(record.pod_uid))
        self._full_names.append(_checksum(f"{record.namespace}/{record.name}"))
        self._names.append(_checksum(record.name))

    def _row_of(self, number: int) -> int | None:
        row = bisect_left(self._numbers, number)
        return row if row < len(self) and self._numbers[row] == number else None

    def _at(self, row: int) -> Indexed:
        return Indexed(
            Place(older=row < self._older, position=self._positions[row]),
            self._numbers[row],
            self._last_times[row],
            self._times[row],
        )

    def _columns(self) -> tuple[array[int], ...]:
        return (
            self._numbers,
            self._positions,
            self._first_times,
            self._last_times,
            self._times,
            self._verdicts,
            self._reasons,
            self._owners,
            self._uids,
            self._full_names,
            self._names,
        )


def _checksum(text: str) -> int:
    return zlib.crc32(text.encode())


def _nanoseconds(time: Timestamp) -> int:
    """Of a filter's time, which may be any: `ToNanoseconds` refuses what no calendar has."""
    return time.seconds * 10**9 + time.nanos

"""The differences that a safe node may have, as rows of a file; and what the rows are worth. Pure.

A row names one place of one scenario in one step or in several that follow each other, both
values, and the rule that is the reason. A row allows exactly what it says; one that nothing
needs any more is a failure too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from numalign.replay.compare import MISSING, Difference
from numalign.replay.recordings import Json, RecordingError
from numalign.replay.report import Excused, Result

_PATH = re.compile(r"\.steps\[(?P<step>\d+)\]\.(?P<field>.+)\Z")
_KEYS = ("steps", "field", "recorded", "replayed", "rule", "reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One allowed difference. `first` and `last` are the steps it covers."""

    scenario: str
    first: int
    last: int
    field: str
    recorded: object
    replayed: object
    rule: str
    reason: str

    def words(self) -> Json:
        """The row as it is written under its scenario; a side without a value has no key."""
        words: Json = {
            "steps": str(self.first) if self.first == self.last else f"{self.first}-{self.last}",
            "field": self.field,
        }
        if self.recorded is not MISSING:
            words["recorded"] = self.recorded
        if self.replayed is not MISSING:
            words["replayed"] = self.replayed
        return {**words, "rule": self.rule, "reason": self.reason}


class AllowedDifferences:
    """The rows of a file, by the place they allow."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows: dict[str, dict[tuple[int, str], Row]] = {}
        for row in rows:
            places = self._rows.setdefault(row.scenario, {})
            for step in range(row.first, row.last + 1):
                if (step, row.field) in places:
                    raise RecordingError(
                        f"{row.scenario}: step {step} {row.field} is allowed twice"
                    )
                places[step, row.field] = row

    def judge(self, result: Result) -> Result:
        """The result with what its rows allow excused, and with the rows that nothing needs."""
        needed = dict(self._rows.get(result.name, {}))
        failures: list[Difference] = []
        excused = list(result.excused)
        for difference in result.failures:
            place = place_of(difference)
            row = None if place is None else needed.get(place)
            if row is not None and _allows(row, difference):
                excused.append(Excused(difference, f"{row.rule}: {row.reason}"))
                needed = {key: value for key, value in needed.items() if key != place}
            else:
                failures.append(difference)
        failures += [
            Difference(f".steps[{step}].{field}", "an allowed difference", "none")
            for step, field in needed
        ]
        return replace(result, failures=tuple(failures), excused=tuple(excused))


def rows_of(document: object) -> tuple[Row, ...]:
    """The rows of a decoded file. Raises RecordingError for one that is not as it should be."""
    if not isinstance(document, Mapping):
        raise RecordingError("must map scenarios to their rows")
    rows = []
    for scenario, given in document.items():
        for words in given:
            if not words.keys() <= set(_KEYS) or not {"steps", "field", "rule"} <= words.keys():
                raise RecordingError(f"{scenario}: a row must have the keys {', '.join(_KEYS)}")
            first, _, last = str(words["steps"]).partition("-")
            rows.append(
                Row(
                    scenario=str(scenario),
                    first=int(first),
                    last=int(last or first),
                    field=words["field"],
                    recorded=words.get("recorded", MISSING),
                    replayed=words.get("replayed", MISSING),
                    rule=words["rule"],
                    reason=words["reason"],
                )
            )
    return tuple(rows)


def document_of(results: Iterable[Result]) -> Json:
    """The document that allows every difference with a cause; the others stay failures."""
    document: Json = {}
    for result in results:
        rows = _joined(result)
        if rows:
            document[result.name] = [row.words() for row in rows]
    return document


def place_of(difference: Difference) -> tuple[int, str] | None:
    """Step and field of a difference; None for one outside of the steps."""
    found = _PATH.match(difference.path)
    return None if found is None else (int(found["step"]), found["field"])


def _joined(result: Result) -> list[Row]:
    """A row for each difference with a cause; the same in steps that follow each other is one."""
    rows: list[Row] = []
    latest: dict[str, int] = {}
    for difference in result.failures:
        place, cause = place_of(difference), difference.cause
        if place is None or cause is None:
            continue
        step, field = place
        row = Row(
            scenario=result.name,
            first=step,
            last=step,
            field=field,
            recorded=difference.recorded,
            replayed=difference.replayed,
            rule=cause.rule,
            reason=cause.reason,
        )
        index = latest.get(field)
        if index is not None and replace(row, first=rows[index].first) == replace(
            rows[index], last=rows[index].last + 1
        ):
            rows[index] = replace(rows[index], last=step)
        else:
            latest[field] = len(rows)
            rows.append(row)
    return rows


def _allows(row: Row, difference: Difference) -> bool:
    cause = difference.cause
    return (
        cause is not None
        and cause.rule == row.rule
        and difference.recorded == row.recorded
        and difference.replayed == row.replayed
    )

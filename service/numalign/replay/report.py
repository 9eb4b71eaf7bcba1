"""What a replay found, as values and as lines. Pure.

The three outcomes exclude each other, so that their counts add up to the recordings given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from numalign.replay.compare import Difference


class Outcome(StrEnum):
    """How one recording came out."""

    PASSED = "passed"
    """Everything recorded was replayed."""
    FAILED = "failed"
    """Something differs that nothing exempts."""
    EXCUSED = "excused"
    """Something differs, all of it in places that the recordings leave open."""


@dataclass(frozen=True, slots=True)
class Excused:
    """A difference that is exempted, and why."""

    difference: Difference
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One recording replayed. `name` is the record's; `file` and `line` say where it stands."""

    file: str
    line: int
    name: str
    failures: tuple[Difference, ...] = ()
    excused: tuple[Excused, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """How it came out."""
        if self.failures:
            return Outcome.FAILED
        return Outcome.EXCUSED if self.excused else Outcome.PASSED


def result_lines(result: Result) -> Iterator[str]:
    """A line for every difference of one recording; none if it passed."""
    where = f"{result.file}:{result.line} {result.name}"
    for failure in result.failures:
        yield f"FAILED {where} {failure}"
    for excused in result.excused:
        yield f"excused {where} {excused.difference} ({excused.why})"


@dataclass(frozen=True, slots=True)
class Summary:
    """How many recordings had which outcome."""

    passed: int
    failed: int
    excused: int

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.excused} excused"


def summary(results: Iterable[Result]) -> Summary:
    """Count the outcomes."""
    outcomes = [result.outcome for result in results]
    return Summary(
        passed=outcomes.count(Outcome.PASSED),
        failed=outcomes.count(Outcome.FAILED),
        excused=outcomes.count(Outcome.EXCUSED),
    )

"""Earlier figures to compare with: which rows have become worse by too much.

Only what means the same on every machine is kept and compared: ratios to a floor of the same
run, and sizes. Milliseconds are not.

Noise: what is compared is the median of the runs, and a row whose runs were further apart than
the margin when the baseline was taken is allowed that much.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.spread import Row

MARGIN = 1.25
"""How many times worse a row may be than it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of the baseline: the median of its runs, and the worst of them."""

    part: str
    median: float
    worst: float
    more_is_better: bool = False

    @property
    def limit(self) -> float:
        """What a run must not be worse than."""
        if self.more_is_better:
            return min(self.median / MARGIN, self.worst)
        return max(self.median * MARGIN, self.worst)


@dataclass(frozen=True, slots=True)
class Regression:
    """A row that has become worse, or was not measured although its part was."""

    part: str
    name: str
    entry: Entry
    now: float | None

    def __str__(self) -> str:
        if self.now is None:
            return f"{self.name}: in the baseline, and not measured by part {self.part!r}"
        side = "below" if self.entry.more_is_better else "above"
        return (
            f"{self.name}: {self.now:.3g}, was {self.entry.median:.3g}, "
            f"{side} the limit of {self.entry.limit:.3g}"
        )


def entries_of(rows: Sequence[Row]) -> dict[str, Entry]:
    """The baseline that these rows make."""
    entries = {}
    for row in rows:
        runs = [figure.compared for figure in row.runs if figure.compared is not None]
        if row.compared is None:
            continue
        entries[row.name] = Entry(
            part=row.part,
            median=row.compared,
            worst=min(runs) if row.more_is_better else max(runs),
            more_is_better=row.more_is_better,
        )
    return entries


def regressions(
    rows: Sequence[Row], entries: Mapping[str, Entry], parts: Collection[str]
) -> list[Regression]:
    """What of `parts` is worse than the entries allow. Rows without an entry are not looked at."""
    now = {row.name: row.compared for row in rows}
    found = []
    for name, entry in entries.items():
        if entry.part not in parts:
            continue
        number = now.get(name)
        if number is None or _is_worse(number, entry):
            found.append(Regression(entry.part, name, entry, number))
    return found


def unknown_rows(rows: Sequence[Row], entries: Mapping[str, Entry]) -> list[str]:
    """Rows that could be compared and are not in the baseline yet."""
    return [row.name for row in rows if row.compared is not None and row.name not in entries]


def read_baseline(path: Path) -> dict[str, Entry]:
    """The entries of a file. Raises ValueError for what is no baseline, and OSError."""
    try:
        document = json.loads(path.read_text())
        return {name: Entry(**entry) for name, entry in document["rows"].items()}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is no baseline: {error!r}") from error


def write_baseline(
    path: Path, entries: Mapping[str, Entry], parts: Collection[str], machine: Mapping[str, Any]
) -> None:
    """Put `entries` in the place of those of the same parts; other parts stay as they are."""
    kept = read_baseline(path) if path.exists() else {}
    kept = {name: entry for name, entry in kept.items() if entry.part not in parts}
    rows = {
        name: {
            "part": entry.part,
            "median": round(entry.median, 4),
            "worst": round(entry.worst, 4),
            "more_is_better": entry.more_is_better,
        }
        for name, entry in sorted({**kept, **entries}.items())
    }
    path.write_text(json.dumps({"machine": dict(machine), "rows": rows}, indent=2) + "\n")


def _is_worse(number: float, entry: Entry) -> bool:
    return number < entry.limit if entry.more_is_better else number > entry.limit

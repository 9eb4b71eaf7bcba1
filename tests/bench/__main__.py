"""`python tests/bench`: how long decisions take, against their targets, as a table and as JSON.

Without `--against` the exit code says whether everything could be measured, not whether it was
fast: a busy machine must not fail a build. With it, a ratio that has become worse by more than a
quarter is measured twice more, and the exit code is 1 if it is as bad each time. It is 2 where
something could not be measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from rich.console import Console
from tests.bench.baseline import (
    Entry,
    Regression,
    entries_of,
    read_baseline,
    regressions,
    unknown_rows,
    write_baseline,
)
from tests.bench.figures import Measured
from tests.bench.parts import PARTS, Effort
from tests.bench.processes import Unmeasurable
from tests.bench.report import document, table
from tests.bench.spread import Row, curves_of, rows_of
from tests.bench.surroundings import surroundings

BASELINE = Path(__file__).with_name("baseline.json")
REGRESSED, UNMEASURED = 1, 2
"""Exit codes."""

TRIES = 3
"""How often a row has to be too slow before it counts."""

_WIDTH = 140


def main() -> int:
    """Measure, print, and say whether it worked."""
    options = _options()
    effort = Effort(samples=options.samples, warm_up=options.warm_up, directory=options.directory)
    try:
        # Read before anything is measured, so that a wrong path does not cost an hour.
        entries = None if options.against is None else read_baseline(options.against)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return UNMEASURED
    measured: dict[str, list[Measured]] = {}
    code = 0
    for part in options.parts:
        try:
            measured[part] = _runs(part, options.repeat, effort)
        except Unmeasurable as error:
            sys.stderr.write(f"{part}: {error}\n")
            code = UNMEASURED
    rows = [row for part, runs in measured.items() for row in rows_of(part, runs)]
    Console(width=_WIDTH).print(table(rows))
    where = surroundings(options.directory or Path(tempfile.gettempdir()))
    if options.json is not None:
        curves = {part: curves_of(runs) for part, runs in measured.items()}
        before = json.loads(options.json.read_text()) if options.json.exists() else None
        written = document(rows, curves, where, before)
        options.json.write_text(json.dumps(written, indent=1) + "\n")
    if options.write_baseline is not None:
        write_baseline(options.write_baseline, entries_of(rows), set(measured), where)
    if entries is not None:
        code = max(code, _compare(entries, rows, options.repeat, effort))
    return code


def _runs(part: str, repeat: int, effort: Effort) -> list[Measured]:
    runs: list[Measured] = []
    for number in range(repeat):
        sys.stderr.write(f"{part}, run {number + 1} of {repeat}\n")
        runs.append(list(PARTS[part](effort)))
    return runs


def _compare(entries: Mapping[str, Entry], rows: Sequence[Row], repeat: int, effort: Effort) -> int:
    """Say what has become worse than the baseline, if it did so each time."""
    for name in unknown_rows(rows, entries):
        sys.stderr.write(f"{name}: not in the baseline\n")
    worse = regressions(rows, entries, {row.part for row in rows})
    for _ in range(TRIES - 1):
        if not worse:
            break
        _tell(worse, "to be measured again")
        again = {one.part for one in worse}
        try:
            measured = [r for part in again for r in rows_of(part, _runs(part, repeat, effort))]
        except Unmeasurable as error:
            sys.stderr.write(f"{error}\n")
            return UNMEASURED
        still = {one.name: one for one in regressions(measured, entries, again)}
        worse = [still[one.name] for one in worse if one.name in still]
    if worse:
        _tell(worse, f"worse each of {TRIES} times")
        return REGRESSED
    sys.stdout.write("No ratio has become worse than the baseline allows.\n")
    return 0


def _tell(worse: Sequence[Regression], what: str) -> None:
    for one in worse:
        sys.stderr.write(f"{one}; {what}\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--samples", type=int, default=400, help="admissions to time")
    parser.add_argument("--warm-up", type=int, default=100, help="admissions before those")
    parser.add_argument("--repeat", type=int, default=1, help="runs of every part")
    parser.add_argument("--json", type=Path, help="put these parts into this file as well")
    parser.add_argument("--directory", type=Path, help="where state files go; short")
    parser.add_argument(
        "--against", type=Path, help="end with 1 if a ratio is worse than in this baseline"
    )
    parser.add_argument(
        "--write-baseline",
        type=Path,
        nargs="?",
        const=BASELINE,
        help=f"make the ratios of these parts the baseline, by default {BASELINE.name} beside this",
    )
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    for name in ("samples", "repeat"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be 1 or more")
    return options


if __name__ == "__main__":
    sys.exit(main())

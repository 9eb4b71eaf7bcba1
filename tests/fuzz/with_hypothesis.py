"""Executions of one target without coverage: for a Python that has no other engine, and for tests.

`python -m tests.fuzz.with_hypothesis TARGET RUNS SECONDS SEED REPORT`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.fuzz.catalogue import target
from tests.fuzz.tally import Report, Tally
from tests.fuzz.target import Target

AT_ONCE = 2000
"""Examples between two looks at the clock."""


def inputs(found: Target) -> st.SearchStrategy[bytes]:
    """Seeds with a piece cut out and another put in, and bytes that come from nowhere."""

    def spliced(start: bytes, place: int, length: int, piece: bytes) -> bytes:
        at = place % (len(start) + 1)
        return start[:at] + piece + start[at + length :]

    pieces = st.binary(max_size=12) | st.sampled_from((b"\xff" * 9, b"-1", b'"', b"[" * 40))
    changed = st.builds(
        spliced, st.sampled_from(found.seeds), st.integers(0, 4095), st.integers(0, 8), pieces
    )
    return changed | st.binary(max_size=64)


def execute(found: Target, runs: int, seconds: float, first_seed: int) -> Report:
    """Run all seeds, then made-up inputs, until there were `runs` or the time is over."""
    tally = Tally(found, "hypothesis")
    started = time.monotonic()
    for each in found.seeds[:runs]:
        tally.execute(each)
    round_ = 0
    while (left := runs - tally.report.executions) > 0 and time.monotonic() < started + seconds:

        @seed(first_seed + round_)
        @settings(
            max_examples=min(left, AT_ONCE),
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(data=inputs(found))
        def once(data: bytes) -> None:
            tally.execute(data)

        once()
        round_ += 1
    return tally.finish(time.monotonic() - started)


def main() -> None:
    """Execute until there were enough, then write the report."""
    name, runs, seconds, first_seed, report = sys.argv[1:]
    found = target(name)
    execute(found, int(runs), float(seconds), int(first_seed)).write(Path(report))


if __name__ == "__main__":
    main()

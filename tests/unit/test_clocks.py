"""The wall clock decides nothing: when it jumps, deadlines and waits stay what they were.

All waiting in the services is by clocks that only go forward. What reads the wall clock are log
lines, spans and the journal, which are dated for people. Commands may: they end, and serve nobody.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SERVICE = Path(__file__).parents[2] / "service" / "numalign"
DATES_SPANS = {"rpc/channel.py", "telemetry/otel_tracer.py"}
DATES_THE_JOURNAL = {"admission/judging.py"}
COMMANDS = "cli/"
WALL_CLOCK = {"time", "time_ns", "now", "utcnow", "today", "localtime", "gmtime", "ctime"}
MODULES = {"time", "datetime", "date"}


def readings(source: str) -> set[str]:
    """The places of a source text that read the wall clock."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in WALL_CLOCK:
            owner = node.value.attr if isinstance(node.value, ast.Attribute) else None
            owner = node.value.id if isinstance(node.value, ast.Name) else owner
            if owner in MODULES:
                found.add(f"{owner}.{node.attr}")
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            found |= {f"time.{alias.name}" for alias in node.names if alias.name in WALL_CLOCK}
    return found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param("import time\ntime.time()", {"time.time"}, id="call"),
        pytest.param("from time import time_ns", {"time.time_ns"}, id="import"),
        pytest.param("import datetime\ndatetime.datetime.now()", {"datetime.now"}, id="date"),
        pytest.param("import time\ntime.monotonic()", set(), id="only-forward"),
    ],
)
def test_readings_are_found(source: str, found: set[str]) -> None:
    assert readings(source) == found


def test_only_what_is_dated_for_people_reads_the_wall_clock() -> None:
    readers = {
        str(path.relative_to(SERVICE))
        for path in SERVICE.rglob("*.py")
        if readings(path.read_text(encoding="utf-8"))
    }

    assert "rpc/channel.py" in readers
    assert {each for each in readers if not each.startswith(COMMANDS)} <= (
        DATES_SPANS | DATES_THE_JOURNAL
    )

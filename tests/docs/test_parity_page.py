"""docs/user/parity.md: its rules are written down, and each row says how it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "user" / "parity.md").read_text(encoding="utf-8")
WRITTEN = {
    rule
    for path in (ROOT / "docs" / "spec").glob("*.md")
    for rule in re.findall(r"\*\*([A-Z]+-T?\d+[a-z]?)\b", path.read_text(encoding="utf-8"))
}
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith(("| feature", "| ---"))
]
NAMED = sorted({rule for row in ROWS for rule in re.findall(r"\b[A-Z]+-T?\d+[a-z]?\b", row[-1])})


def test_rules_are_found() -> None:
    assert len(WRITTEN) > 400
    assert len(NAMED) > 80


@pytest.mark.parametrize("rule", NAMED)
def test_a_rule_is_written_down(rule: str) -> None:
    assert rule in WRITTEN


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_says_how_it_stands(row: list[str]) -> None:
    _, here, difference, _ = row

    assert here in {"same", "more", "not"}
    assert difference or here != "more"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_range_of_rules_goes_up(row: list[str]) -> None:
    for prefix, low, other, high in re.findall(r"([A-Z]+)-(\d+) to ([A-Z]+)-(\d+)", row[-1]):
        assert prefix == other
        assert int(low) < int(high)

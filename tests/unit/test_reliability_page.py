"""docs/reliability.md names tests, targets and faults: they are there, and none is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.fuzz.catalogue import NAMES
from tests.soak.faults import KILLS, OTHERS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))


@pytest.mark.parametrize(("file", "test"), NAMED, ids=[test for _, test in NAMED])
def test_named_tests_are_there(file: str, test: str) -> None:
    source = (ROOT / file).read_text(encoding="utf-8")

    assert re.search(rf"^(async )?def {test}\(", source, re.MULTILINE)


def test_every_promise_names_a_test() -> None:
    promises = PAGE.partition("## Promises")[2].partition("\n## ")[0]
    rows = [line for line in promises.splitlines() if line.startswith("| ")][2:]

    assert len(rows) > 10
    assert all("`tests/" in row for row in rows)


@pytest.mark.parametrize("name", [*NAMES, *KILLS, *OTHERS])
def test_targets_and_faults_are_on_the_page(name: str) -> None:
    assert f"`{name}`" in PAGE

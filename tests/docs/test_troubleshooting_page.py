"""docs/user/troubleshooting.md has every reason that the code can answer with, and no other."""

from __future__ import annotations

import re

import pytest
from tests.docs.reasons import ROOT, reasons_in

PAGE = (ROOT / "docs" / "user" / "troubleshooting.md").read_text(encoding="utf-8")
ANSWERS = reasons_in("numalign")
EVENTS = reasons_in("numalign_agent")
EVERYTHING = sorted({*ANSWERS, *EVENTS})


def test_reasons_are_found() -> None:
    assert {"TopologyAffinityError", "OutOf", "SMTAlignmentError", "Preempting"} <= set(ANSWERS)
    assert {"CannotBeJudged", "ContainerUnpinned", "NotSupported"} <= set(EVENTS)
    assert len(ANSWERS) > 25


@pytest.mark.parametrize("reason", EVERYTHING)
def test_every_reason_is_explained(reason: str) -> None:
    made = sorted({*ANSWERS.get(reason, ()), *EVENTS.get(reason, ())})

    assert re.search(rf"^### {reason}|`{reason}", PAGE, re.MULTILINE), made


@pytest.mark.parametrize("heading", re.findall(r"^### (\S+)$", PAGE, re.MULTILINE))
def test_every_explained_reason_is_there(heading: str) -> None:
    assert any(heading == reason or heading.startswith(reason) for reason in ANSWERS)

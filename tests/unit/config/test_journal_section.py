"""How much of what was decided is kept, as the configuration says it."""

from __future__ import annotations

import pytest

from numalign.config.journal import read_journal
from numalign.document.problems import Problems
from numalign.document.section import Section


@pytest.mark.parametrize(
    ("document", "size"),
    [
        pytest.param({}, 8 << 20, id="the-default"),
        pytest.param({"size": "1Mi"}, 1 << 20, id="a-quantity"),
        pytest.param({"size": 65536}, 65536, id="a-plain-number"),
        pytest.param({"size": 0}, 0, id="none"),
    ],
)
def test_size(document: object, size: int) -> None:
    problems = Problems()
    assert read_journal(Section(document, "numalign.journal", problems)).size == size
    problems.refuse()


@pytest.mark.parametrize(
    ("document", "text"),
    [
        pytest.param(
            {"size": "1k"}, 'numalign.journal.size: must be 0, or 64Ki to 1Gi, not "1k"', id="small"
        ),
        pytest.param({"size": "2Gi"}, "must be 0, or 64Ki to 1Gi", id="large"),
        pytest.param({"size": -1}, "must be 0, or 64Ki to 1Gi", id="negative"),
        pytest.param({"size": "lots"}, 'numalign.journal.size: "lots"', id="no-quantity"),
        pytest.param({"entries": 3}, "numalign.journal.entries", id="unknown-key"),
    ],
)
def test_wrong_sizes(document: object, text: str) -> None:
    problems = Problems()
    assert read_journal(Section(document, "numalign.journal", problems)).size == 8 << 20
    with pytest.raises(Exception, match=text.replace('"', ".")):
        problems.refuse()

"""The report page as a browser shows it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.observability.browser import show
from tests.unit.cli.report.nodes import NASTY, machine, node

from numalign.cli.report.page import report_page

pytestmark = pytest.mark.e2e

OWNER_A = "8ecae6"
GIVEN = "3d7dca"


def test_it_is_rendered_whole_and_without_complaint(tmp_path: Path) -> None:
    page = tmp_path / "node.html"
    page.write_text(report_page(node(machine(4, 16), pod=NASTY)), encoding="utf-8")
    shown = show(page)
    assert shown.complaints == ()
    assert shown.has_colour(OWNER_A)
    assert shown.has_colour(GIVEN)
    assert Counter(re.findall(r'data-cpu="(\d+)"', shown.dom)) == Counter(map(str, range(128)))
    assert sorted(re.findall(r'data-numa-node="(\d+)"', shown.dom)) == list("0123")
    assert set(re.findall(r'data-device="([^"]+)"', shown.dom)) == {"gpu-0", "gpu-1", "bridge"}
    assert "<script" not in shown.dom


def test_a_complaint_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "broken.html"
    broken = report_page(replace(node(), node="x")).replace("</body>", "<script>1</script></body>")
    page.write_text(broken, encoding="utf-8")
    (complaint, *_) = show(page).complaints
    assert "Content Security Policy" in complaint

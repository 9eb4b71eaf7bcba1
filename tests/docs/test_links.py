"""No dead link and no dead anchor in any document, read as the repository shows them."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_SKIPPED = ("tests/conformance/recordings",)
DOCUMENTS = sorted(
    path
    for path in subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()
    if not path.startswith(_SKIPPED) and (ROOT / path).is_file()
)  # fmt: skip
_LINK = re.compile(r"\[[^]\[]*\]\(([^)\s]+)\)")


@cache
def anchors_of(path: Path) -> frozenset[str]:
    """The anchors of a document's headings, as the repository makes them."""
    text = re.sub(r"^ *```.*?^ *```", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    found: dict[str, int] = {}
    anchors = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        times = found.get(slug, 0)
        found[slug] = times + 1
        anchors.add(f"{slug}-{times}" if times else slug)
    return frozenset(anchors)


def links_of(path: Path) -> list[str]:
    """The links of a document, without those in code."""
    text = re.sub(r"^ *```.*?^ *```", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "", text)
    return _LINK.findall(text)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    path = ROOT / document
    dead = []
    for link in links_of(path):
        if re.match(r"https?://|mailto:", link):
            continue
        target, _, anchor = link.partition("#")
        there = (path.parent / target).resolve() if target else path
        if not there.exists() or (anchor and anchor not in anchors_of(there)):
            dead.append(link)

    assert dead == []


def test_documents_are_found() -> None:
    assert {"README.md", "docs/README.md", "docs/cli.md", "CHANGELOG.md"} <= set(DOCUMENTS)

"""The pictures of docs/user show what numalign decides today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "user" / "images"


def test_they_are_what_is_drawn_from_decisions(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "pictures"), str(tmp_path)]
    subprocess.run(command, check=True, timeout=120)
    drawn = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}

    assert drawn == {path.name: path.read_text(encoding="utf-8") for path in IMAGES.glob("*.svg")}


@pytest.mark.parametrize("path", sorted(IMAGES.glob("*.svg")), ids=lambda path: path.name)
def test_each_is_well_formed_and_made_for_both_kinds_of_page(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    root = ET.fromstring(text)

    assert root.attrib["aria-label"]
    assert "prefers-color-scheme: dark" in text

"""The deployed rules, with alerts that fire as soon as they are so."""

from __future__ import annotations

from pathlib import Path

import yaml
from tests.observability.queries import RULES


def write_impatient_rules(path: Path) -> Path:
    """Write them to `path`: all that differs is how long something must be so before an alert."""
    document = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    for group in document["groups"]:
        for rule in group["rules"]:
            if "for" in rule:
                rule["for"] = "0s"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path

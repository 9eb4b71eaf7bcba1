"""docs/operations.md says what the tests hold the services to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit.process.observed_world import settings

from numalign.config.settings import Service
from numalign.process import admission_changes, provider_parts, topology_changes
from numalign.process.reload import kubelet_keys_of, settings_of
from numalign.process.second_owner import watch as second_owner

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def column(number: int) -> str:
    """A column of the table of settings."""
    table = TEXT.split("| takes effect at once |")[1].split("\n\n")[0]
    return "\n".join(line.split("|")[number] for line in table.splitlines()[1:])


def test_it_says_which_settings_take_effect_and_which_do_not(tmp_path: Path) -> None:
    config = settings(tmp_path)
    applied = {
        *admission_changes.chain_settings(config),
        *topology_changes.values_of(config),
        *provider_parts.cpu_settings(config),
        *provider_parts.memory_settings(config),
        "numalign.devices",
        "numalign.log",
        *second_owner.SETTINGS.values(),
    }
    everything = {*settings_of(Service).values(), *kubelet_keys_of(Service)}

    assert applied <= everything
    for path in applied:
        assert f"`{path}`" in column(1), path
    for path in everything - applied:
        assert f"`{path}`" in column(2), path


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(tests/[\w/]+\.py)`", TEXT))))
def test_the_tests_that_it_names_are_there(path: str) -> None:
    assert (ROOT / path).is_file()


@pytest.mark.parametrize(
    "sentence",
    [
        "not pinned: asks for 2 exclusive CPUs, has none",
        "not booked: asks for",
        "already_admitted",
        ".damaged-1",
        ".replaced-1",
        "needs_restart",
    ],
)
def test_what_it_quotes_is_what_is_said(sentence: str) -> None:
    said = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("*.py")]

    assert sentence in TEXT
    assert any(sentence in text for text in said if "docs/operations.md" not in text)

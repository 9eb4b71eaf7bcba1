"""The documents of the command and of providers say what is there."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from numalign.cli.main import cli
from numalign_client import sdk

ROOT = Path(__file__).parents[3]
SECTIONS = dict(
    re.findall(
        r"^## numalign (\S+)\n(.*?)(?=^## |\Z)",
        (ROOT / "docs" / "cli.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
)
SHARED = {"--output", "--socket", "--config", "--timeout", "--help"}


def options_of(command: click.Command) -> set[str]:
    commands = command.commands.values() if isinstance(command, click.Group) else (command,)
    return {
        option
        for one in commands
        for parameter in one.params
        if isinstance(parameter, click.Option)
        for option in parameter.opts
        if option.startswith("--")
    }


def test_every_command_has_a_section() -> None:
    assert sorted(SECTIONS) == sorted(cli.list_commands(click.Context(cli)))


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_names_every_option_and_shows_an_example(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    section = SECTIONS[name]

    for option in options_of(command) - SHARED:
        assert option in section, option
    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", section):
        assert option in options_of(command) | SHARED or "(--" + option[2:] in section, option
    assert "```console" in section


def test_the_example_of_a_provider_is_the_example() -> None:
    text = (ROOT / "docs" / "writing-a-hint-provider.md").read_text(encoding="utf-8")
    example = ROOT / "clients" / "examples" / "licence-provider" / "provider.py"
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)

    assert len(blocks) == 2
    for block in blocks:
        assert block.strip() in example.read_text(encoding="utf-8")


def test_the_document_on_providers_names_what_there_is_to_use() -> None:
    text = (ROOT / "docs" / "writing-a-hint-provider.md").read_text(encoding="utf-8")
    internal = {"HintProviderServicer", "HintValue", "Hints", "SqliteStore", "StateFileError"}

    for name in set(sdk.__all__) - internal:
        assert name in text, name

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
SHARED = {
    *("--output", "--socket", "--config", "--timeout", "--help"),
    *("--node", "--namespace", "--context"),
}


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
    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+(?:[0-9]+[A-Z]i)?", section):
        assert option in options_of(command) | SHARED or "(--" + option[2:] in section, option
    assert "```console" in section


def test_the_examples_of_providers_are_the_examples() -> None:
    text = (ROOT / "docs" / "writing-a-hint-provider.md").read_text(encoding="utf-8")
    examples = ("licence-provider", "hint-provider")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)

    assert len(blocks) == 2 * len(examples)
    for number, block in enumerate(blocks):
        example = ROOT / "clients" / "examples" / examples[number // 2] / "provider.py"
        assert block.strip() in example.read_text(encoding="utf-8")


def test_the_documents_on_ones_own_parts_name_what_there_is_to_use() -> None:
    pages = ("writing-a-hint-provider.md", "writing-an-admit-handler.md")
    text = "\n".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in pages)
    internal = {"HintProviderServicer", "HintValue", "Hints", "SqliteStore", "StateFileError"}

    for name in set(sdk.__all__) - internal:
        assert name in text, name

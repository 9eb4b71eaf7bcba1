"""`numalign config`: check a configuration file and show what it means."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from numalign.cli.options import environment, examples, output_option
from numalign.cli.output import emit, yaml_text
from numalign.config.loader import load_settings
from numalign.config.settings_document import settings_document

if TYPE_CHECKING:
    from rich.console import RenderableType


@click.group(epilog=examples("numalign config check /etc/numalign/config.yaml"))
def config() -> None:
    """Work with configuration files."""


@config.command(
    epilog=examples(
        "numalign config check /etc/numalign/config.yaml",
        "numalign config check /var/lib/kubelet/config.yaml -o json",
        "numalign config check config.yaml --machine machine.yaml",
    )
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--machine",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Hold it to the machine of this file, not to the one that it names or runs on.",
)
@output_option
def check(file: Path, machine: Path | None) -> None:
    """Check a configuration file, and show every setting that it leads to.

    It is held to the machine that it names, this one by default, as a start of the services
    would. What they have kept since they ran last is not looked at.

    Exit codes: 0 the services would take it, 1 they would not: every problem is named.
    """
    from numalign.process.settings_check import check_settings  # noqa: PLC0415 - large

    overrides = None if machine is None else {"machine": {"file": str(machine.absolute())}}
    settings = load_settings(file, *environment(), overrides)
    check_settings(settings)
    document = settings_document(settings)

    def draw() -> Iterator[RenderableType]:
        for warning in settings.warnings:
            yield Text(f"warning: {warning}", style="yellow")
        yield Text(f"{file}: no problems; with defaults it says:", style="green")
        yield Text(yaml_text(document).rstrip())

    emit({"settings": document, "warnings": list(settings.warnings)}, draw)

"""`numalign config`: check a configuration file and show what it means."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from numalign.cli.options import environment, examples, output_option
from numalign.cli.output import emit, yaml_text
from numalign.cli.settings_document import settings_document
from numalign.config.loader import load_settings

if TYPE_CHECKING:
    from rich.console import RenderableType


@click.group(epilog=examples("numalign config check /etc/numalign/config.yaml"))
def config() -> None:
    """Work with configuration files."""


@config.command(
    epilog=examples(
        "numalign config check /etc/numalign/config.yaml",
        "numalign config check /var/lib/kubelet/config.yaml -o json",
    )
)
@click.argument("file", type=click.Path(path_type=Path))
@output_option
def check(file: Path) -> None:
    """Check a configuration file, and show every setting that it leads to.

    Exit codes: 0 the services would take it, 1 they would not: every problem is named.
    """
    settings = load_settings(file, *environment())
    document = settings_document(settings)

    def draw() -> Iterator[RenderableType]:
        for warning in settings.warnings:
            yield Text(f"warning: {warning}", style="yellow")
        yield Text(f"{file}: no problems; with defaults it says:", style="green")
        yield Text(yaml_text(document).rstrip())

    emit({"settings": document, "warnings": list(settings.warnings)}, draw)

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
from numalign.config.machine_source import read_machine
from numalign.config.settings import MachineRoot, Settings
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
    )
)
@click.argument("file", type=click.Path(path_type=Path))
@output_option
def check(file: Path) -> None:
    """Check a configuration file, and show every setting that it leads to.

    Exit codes: 0 the services would take it, 1 they would not: every problem is named.
    """
    settings = load_settings(file, *environment())
    _refuse_what_does_not_fit(settings)
    document = settings_document(settings)

    def draw() -> Iterator[RenderableType]:
        for warning in settings.warnings:
            yield Text(f"warning: {warning}", style="yellow")
        yield Text(f"{file}: no problems; with defaults it says:", style="green")
        yield Text(yaml_text(document).rstrip())

    emit({"settings": document, "warnings": list(settings.warnings)}, draw)


def _refuse_what_does_not_fit(settings: Settings) -> None:
    """Look at the chain of admit handlers, and hold devices to the machine.

    Devices are not held to the machine that happens to run this.
    """
    from numalign.process.admission_changes import check_chain  # noqa: PLC0415 - large

    check_chain(settings)
    if isinstance(settings.machine, MachineRoot) or not settings.devices:
        return
    from numalign.process.compatibility import strategies_of  # noqa: PLC0415 - large
    from numalign.process.device_backends import refuse_devices  # noqa: PLC0415 - large

    machine = read_machine(settings.machine).machine
    listed = strategies_of(settings.compatibility).plugin_host.listed
    refuse_devices(settings, machine.node_ids(), listed)

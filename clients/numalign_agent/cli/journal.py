"""`numalign-agent journal`: what the agent decided and did, oldest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from numalign.cli.options import examples, output_option
from numalign.cli.output import emit
from numalign_agent.cli.state import journal_options, reading_journal
from numalign_agent.journal.rows import Entry
from numalign_agent.status.times import rfc3339

if TYPE_CHECKING:
    from rich.console import RenderableType


@click.command(
    epilog=examples("numalign-agent journal", "numalign-agent journal --pod default/web -n 20")
)
@click.option("--pod", default="", metavar="NAMESPACE/NAME", help="Only of this pod.")
@click.option(
    "-n",
    "--last",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="How many entries.",
)
@journal_options
@output_option
def journal(pod: str, last: int, config: Path | None, state_directory: Path | None) -> None:
    """Show the last decisions and events, oldest first."""
    with reading_journal(config, state_directory) as store:
        entries = store.entries(last, pod)
    emit({"entries": [asdict(entry) for entry in entries]}, lambda: _draw(entries))


def _draw(entries: list[Entry]) -> Iterator[RenderableType]:
    from rich.table import Table  # noqa: PLC0415 - only for people

    table = Table(box=None, pad_edge=False)
    for name in ("time", "pod", "kind", "type", "reason", "message"):
        table.add_column(name)
    for entry in entries:
        table.add_row(
            rfc3339(entry.at), entry.pod, entry.kind, entry.type, entry.reason, entry.message
        )
    yield table

"""`numalign-agent pods`: the pods of this node, and what became of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from numalign.cli.options import examples, output_option
from numalign.cli.output import emit
from numalign_agent.cli.state import journal_options, reading_journal
from numalign_agent.journal.rows import PodRow, Problem

if TYPE_CHECKING:
    from rich.console import RenderableType


@click.command(epilog=examples("numalign-agent pods", "numalign-agent pods -o json"))
@journal_options
@output_option
def pods(config: Path | None, state_directory: Path | None) -> None:
    """Show the pods of this node as the agent's journal has them, running or not.

    Pods that were admitted come first, in the order of their first admission. What sources
    cannot use, such as a manifest that is wrong, is listed below.
    """
    with reading_journal(config, state_directory) as journal:
        rows, problems = journal.pods(), journal.problems()
    document = {
        "pods": [asdict(row) for row in rows],
        "problems": [asdict(problem) for problem in problems],
    }
    emit(document, lambda: _draw(rows, problems))


def _draw(rows: list[PodRow], problems: list[Problem]) -> Iterator[RenderableType]:
    from rich.table import Table  # noqa: PLC0415 - only for people
    from rich.text import Text  # noqa: PLC0415 - only for people

    table = Table(box=None, pad_edge=False)
    for name in ("pod", "source", "decision", "phase", "ready", "restarts", "why"):
        table.add_column(name)
    for row in rows:
        status = row.status
        containers = status.get("containerStatuses") or ()
        ready = sum(1 for container in containers if container["ready"])
        table.add_row(
            f"{row.namespace}/{row.name}",
            row.source,
            row.verdict or "undecided",
            status.get("phase", ""),
            f"{ready}/{len(containers)}" if containers else "",
            str(_restarts(status)),
            _why(row),
        )
    yield table
    for problem in problems:
        yield Text(f"{problem.source}: {problem.place}: {problem.why}", style="yellow")


def _restarts(status: Any) -> int:  # noqa: ANN401 - JSON
    return sum(c.get("restartCount", 0) for c in status.get("containerStatuses") or ())


def _why(row: PodRow) -> str:
    if row.is_rejected:
        return f"{row.reason}: {row.message}"
    reason, message = row.status.get("reason", ""), row.status.get("message", "")
    return f"{reason}: {message}" if message else reason

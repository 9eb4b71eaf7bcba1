"""`numalign top`: the NUMA map, live."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

import click
from grpc.aio import AioRpcError

from numalign.cli.calls import Unreachable, ask_services
from numalign.cli.endpoint import Endpoint
from numalign.cli.failure import describe, say
from numalign.cli.options import (
    Output,
    Reach,
    Seconds,
    current_reach,
    examples,
    node_options,
    output_format,
    output_option,
    reach_options,
)
from numalign.cli.output import emit
from numalign.cli.snapshot.document import document_of
from numalign.cli.snapshot.live import node_of, snapshot_option
from numalign.cli.snapshot.reading import Asker
from numalign.cli.verdicts import Exit
from numalign.config.settings import Service


@click.command(epilog=examples("numalign top", "numalign top --once", "numalign top -o json"))
@click.option("--once", is_flag=True, help="Draw it once, and end.")
@click.option(
    "--interval",
    type=Seconds(min=0.1),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to look.",
)
@click.option(
    "--decisions",
    type=click.IntRange(0, 1000),
    default=8,
    show_default=True,
    help="How many of the last decisions to show.",
)
@snapshot_option
@node_options
@reach_options
@output_option
def top(once: bool, interval: float, decisions: int, snapshot: Path | None) -> None:
    """Watch the NUMA map live: nodes, cores, owners, memory, devices, last decisions.

    Ctrl-C ends it. Where the output is no terminal, is JSON or YAML, or the node is a snapshot,
    it is drawn once.

    Exit codes, drawn once: 0 if everything answered, 1 if not: what is missing is named.
    """
    live = output_format() is Output.TABLE and sys.stdout.isatty()
    if live and not once and snapshot is None:
        reach = current_reach()
        try:
            ask_services(lambda services: _watch(services, reach, interval, decisions))
        except KeyboardInterrupt:
            return
    from numalign.cli.report.top_view import top_parts  # noqa: PLC0415 - large

    node, problems = node_of(snapshot)
    emit(document_of(node), lambda: top_parts(node, (), decisions))
    say(problems)
    if problems:
        click.get_current_context().exit(Exit.ERROR)


async def _watch(
    services: Mapping[Service, Endpoint], reach: Reach, interval: float, decisions: int
) -> None:
    """Draw the node until it is interrupted; services that are away for a while are named."""
    from rich.console import Group  # noqa: PLC0415 - large
    from rich.live import Live  # noqa: PLC0415 - large
    from rich.text import Text  # noqa: PLC0415 - large

    from numalign.cli.report.top_view import top_parts  # noqa: PLC0415 - large

    async with Asker(services, reach) as asker:
        node, problems = await asker.snapshot(decisions=max(decisions, 1))
        with Live(screen=True, auto_refresh=False, vertical_overflow="crop") as screen:
            while True:
                screen.update(Group(*top_parts(node, problems, decisions)), refresh=True)
                await asyncio.sleep(interval)
                try:
                    node, problems = await asker.snapshot(decisions=max(decisions, 1))
                except (AioRpcError, Unreachable) as error:
                    problems = [f"as of {node.taken}: {line}" for line in describe(error) or ()]
                    screen.update(Text("\n".join(problems)), refresh=True)

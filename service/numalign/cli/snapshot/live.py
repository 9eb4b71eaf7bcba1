"""A node for a command: of a snapshot file, or the one that runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from numalign.cli.calls import ask_services
from numalign.cli.endpoint import Endpoint
from numalign.cli.options import current_reach
from numalign.cli.snapshot.document import read_snapshot
from numalign.cli.snapshot.reading import Asker
from numalign.cli.snapshot.values import NodeSnapshot
from numalign.config.settings import Service

F = TypeVar("F", bound=Callable[..., Any])


def live_node() -> tuple[NodeSnapshot, list[str]]:
    """The node that runs, here or elsewhere, and a line for each part that is missing.

    Raises as `Asker` and `ask_services` do.
    """
    reach = current_reach()

    async def take(services: Mapping[Service, Endpoint]) -> tuple[NodeSnapshot, list[str]]:
        async with Asker(services, reach) as asker:
            return await asker.snapshot()

    return ask_services(take)


def snapshot_option(command: F) -> F:
    """Add `--snapshot FILE`, for `node_of`."""
    return click.option(
        "--snapshot",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Take the node from this file of `numalign snapshot`.",
    )(command)


def node_of(snapshot: Path | None) -> tuple[NodeSnapshot, list[str]]:
    """The node in the file, or the one that runs, and a line for each part that is missing."""
    if snapshot is None:
        return live_node()
    if current_reach().remote is not None:
        raise click.UsageError("--snapshot and --node exclude each other")
    return read_snapshot(snapshot), []

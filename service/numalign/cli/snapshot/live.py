"""A node for a command: of a snapshot file, or the one that runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from numalign.cli.calls import run, sockets_of
from numalign.cli.options import current_reach
from numalign.cli.snapshot.document import read_snapshot
from numalign.cli.snapshot.reading import Asker
from numalign.cli.snapshot.values import NodeSnapshot
from numalign.config.settings import Service

F = TypeVar("F", bound=Callable[..., Any])


async def take(sockets: Mapping[Service, Path], seconds: float) -> tuple[NodeSnapshot, list[str]]:
    """The node that runs, and a line for each part that is missing. Raises as `Asker` does."""
    async with Asker(sockets, seconds) as asker:
        return await asker.snapshot()


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
    if snapshot is not None:
        return read_snapshot(snapshot), []
    reach = current_reach()
    return run(take(sockets_of(reach), reach.timeout))

"""`numalign import`: take over what a kubelet has on this node, before the services start."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from numalign.cli.manifests import read_pods
from numalign.cli.options import config_option, environment, examples, output_option
from numalign.cli.output import emit
from numalign.config.loader import load_settings
from numalign.process.importing.importer import import_kubelet
from numalign.process.importing.running_pods import running_pods

if TYPE_CHECKING:
    from rich.console import RenderableType


@click.command(
    name="import",
    epilog=examples(
        "numalign import --config /etc/numalign/config.yaml",
        "numalign import --pods pods.json --config /etc/numalign/config.yaml",
    ),
)
@click.option(
    "--kubelet-root",
    type=click.Path(path_type=Path),
    default=Path("/var/lib/kubelet"),
    show_default=True,
    metavar="DIR",
    help="Root directory of the kubelet, with its state files.",
)
@click.option(
    "--pods",
    "manifest",
    metavar="FILE",
    help="The pods that run here, as a manifest or a JSON list (`-`: standard input), to be "
    "recorded as admitted.",
)
@click.option("--processes", is_flag=True, help="A state file for each service, instead of one.")
@click.option("--replace", is_flag=True, help="Set a state that holds pods aside first.")
@click.option(
    "--state-directory",
    type=click.Path(path_type=Path),
    help="Directory of the state files, instead of the configured one.",
)
@config_option
@output_option
def import_(
    kubelet_root: Path,
    manifest: str | None,
    processes: bool,
    replace: bool,
    state_directory: Path | None,
    config: Path | None,
) -> None:
    """Take over CPUs, memory and devices from a kubelet's state files.

    The services must be stopped. Every file is verified by its checksum; everything that is
    taken over or left out is named.

    Exit codes: 0 done, 1 nothing was written.
    """
    overrides: dict[str, object] = {}
    if state_directory is not None:
        overrides["stateDirectory"] = str(state_directory.absolute())
    settings = load_settings(config, *environment(), overrides)
    pods: tuple[bytes, ...] | None = None
    notes: list[str] = []
    if manifest is not None:
        read, ignored = read_pods((manifest,))
        pods, ended = running_pods(read)
        notes += (*ignored, *ended)
    outcome = asyncio.run(
        import_kubelet(settings, kubelet_root, pods, together=not processes, replace=replace)
    )
    notes += outcome.notes

    def draw() -> Iterator[RenderableType]:
        for line in outcome.taken:
            yield Text(f"imported  {line}")
        for line in outcome.left_out:
            yield Text(f"left out  {line}", style="yellow")
        for line in notes:
            yield Text(f"note      {line}")

    emit({"imported": outcome.taken, "leftOut": outcome.left_out, "notes": notes}, draw)

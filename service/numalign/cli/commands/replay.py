"""`numalign replay`: recorded decisions against the real services."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from numalign.cli.options import examples
from numalign.config.settings import Compatibility


@click.command(
    epilog=examples(
        "numalign replay recordings/*.jsonl.gz",
        "numalign replay recordings/*.jsonl.gz --processes -j 1",
        "numalign replay recordings/*.jsonl.gz --compatibility safe --differences known.yaml",
    )
)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
@click.option(
    "--compatibility",
    type=click.Choice([mode.value for mode in Compatibility]),
    default=Compatibility.KUBELET.value,
    show_default=True,
    help="The mode that the services run in.",
)
@click.option(
    "--processes", is_flag=True, help="Five processes and their sockets, not one process."
)
@click.option(
    "--plugins",
    is_flag=True,
    help="Devices come from real device plugins in a process of their own.",
)
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="How many recordings are replayed at a time.",
)
@click.option(
    "--differences",
    multiple=True,
    type=click.Path(path_type=Path),
    help="With `safe`: the differences that are allowed, with their reasons; may be repeated.",
)
@click.option(
    "--write-differences",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write further ones that have a known cause as a file for --differences.",
)
@click.option(
    "--state-directory",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the services' state goes meanwhile; in memory by default.",
)
def replay(
    files: tuple[Path, ...],
    compatibility: str,
    processes: bool,
    plugins: bool,
    jobs: int,
    differences: tuple[Path, ...],
    write_differences: Path | None,
    state_directory: Path | None,
) -> None:
    """Replay recorded decisions through the services, and print every difference.

    A file is known by its records. The last line counts what passed, failed and is excused.

    Exit codes: 0 nothing failed, 1 something did, 2 a file cannot be replayed.
    """
    from numalign.replay.batches import log_errors_only  # noqa: PLC0415 - large, not for --help
    from numalign.replay.command import replay_command  # noqa: PLC0415 - as above

    log_errors_only()
    code = replay_command(
        files=files,
        compatibility=Compatibility(compatibility),
        processes=processes,
        plugins=plugins,
        jobs=jobs,
        differences_files=differences,
        output=sys.stdout,
        state_directory=state_directory,
        write_differences=write_differences,
    )
    click.get_current_context().exit(code)

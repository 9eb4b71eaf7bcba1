"""`python -m numalign.replay`: the command without the rest of the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from numalign.config.settings import Compatibility
from numalign.replay.batches import log_errors_only
from numalign.replay.command import DEFAULT_JOBS, replay_command

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("files", nargs=-1, required=True, type=_FILE)
@click.option(
    "--compatibility",
    type=click.Choice([mode.value for mode in Compatibility]),
    default=Compatibility.KUBELET.value,
    help="What the services are to be compatible with.",
)
@click.option("--processes", is_flag=True, help="Each service in a process of its own.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), default=DEFAULT_JOBS, help="Workers.")
@click.option("--differences", multiple=True, type=_FILE, help="The differences allowed.")
@click.option("--write-differences", type=_FILE, help="Write those with a known cause here.")
@click.option(
    "--state-dir", type=click.Path(path_type=Path, file_okay=False), help="Where state goes."
)
def main(
    files: tuple[Path, ...],
    compatibility: str,
    processes: bool,
    jobs: int,
    differences: tuple[Path, ...],
    write_differences: Path | None,
    state_dir: Path | None,
) -> None:
    """Hold recordings against the services and compare everything recorded."""
    log_errors_only()
    click.get_current_context().exit(
        replay_command(
            files,
            Compatibility(compatibility),
            processes,
            jobs,
            differences,
            output=sys.stdout,
            state_directory=state_dir,
            write_differences=write_differences,
        )
    )


if __name__ == "__main__":
    main()

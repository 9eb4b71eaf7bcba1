"""`numalign serve`: run services until a signal ends them."""

from __future__ import annotations

from pathlib import Path

import click

from numalign.cli.options import config_option, examples

_ALL = "all"
_WHAT = (_ALL, "admission", "topology", "cpu", "memory", "device", "dra")


@click.command(
    epilog=examples(
        "numalign serve all",
        "numalign serve all --processes --config /etc/numalign/config.yaml",
        "numalign serve cpu --config /etc/numalign/config.yaml",
    )
)
@click.argument("what", type=click.Choice(_WHAT))
@config_option
@click.option("--processes", is_flag=True, help="With `all`: each service in a process of its own.")
@click.option(
    "--runtime-directory",
    type=click.Path(path_type=Path),
    help="Directory of the sockets, instead of the configured one.",
)
@click.option(
    "--state-directory",
    type=click.Path(path_type=Path),
    help="Directory of the state files, instead of the configured one.",
)
def serve(
    what: str,
    config: Path | None,
    processes: bool,
    runtime_directory: Path | None,
    state_directory: Path | None,
) -> None:
    """Run the services, all of them in this process or one.

    SIGTERM stops in order, SIGHUP reads the configuration again.
    """
    if processes and what != _ALL:
        raise click.UsageError("--processes goes with `all` only")
    overrides: dict[str, object] = {}
    if runtime_directory is not None:
        overrides["runtimeDirectory"] = str(runtime_directory.absolute())
    if state_directory is not None:
        overrides["stateDirectory"] = str(state_directory.absolute())
    click.get_current_context().exit(_serve(what, config, overrides, processes=processes))


def _serve(what: str, config: Path | None, overrides: dict[str, object], *, processes: bool) -> int:
    if processes:
        from numalign.process.supervise import serve_processes  # noqa: PLC0415 - only this way

        return serve_processes(config, overrides)
    from numalign.config.settings import Service  # noqa: PLC0415 - not for --help
    from numalign.process.serve import serve as serve_here  # noqa: PLC0415 - not for --help

    return serve_here(None if what == _ALL else Service(what), config, overrides)

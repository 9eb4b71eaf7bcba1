"""Options that several commands have: the output format and where the services are.

Both may stand before or after the command; the nearer one wins.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from numalign.cli.remote.pod import NAMESPACE
from numalign.cli.remote.target import RemoteNode

F = TypeVar("F", bound=Callable[..., Any])

_PREFIX = "numalign"
_OUTPUT = f"{_PREFIX}.output"


class Output(StrEnum):
    """How a command answers."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def output_option(command: F) -> F:
    """Add `-o`; a command asks for its value with `output_format`."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice([output.value for output in Output]),
        expose_value=False,
        callback=_remember_output,
        help="How to answer: a table to read (the default), or JSON or YAML for programs.",
    )(command)


def output_format() -> Output:
    """The format that was asked for, of the running command."""
    return Output(click.get_current_context().meta.get(_OUTPUT, Output.TABLE))


def _remember_output(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.meta[_OUTPUT] = value


@dataclass(frozen=True, slots=True)
class Reach:
    """Where the services are and how long to wait. `timeout` is in seconds.

    `stated` says whether the user named a place. `remote` is another node of the cluster.
    """

    socket: Path | None
    config: Path | None
    timeout: float
    remote: RemoteNode | None = None

    @property
    def stated(self) -> bool:
        """Whether the user said where the services are."""
        return self.socket is not None or self.config is not None


class Seconds(click.FloatRange):
    """A time that ends: neither `inf` nor `nan`."""

    name = "seconds"

    def convert(
        self, value: float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The seconds; a usage error for what is no number or not in the range."""
        seconds: float = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f'"{value}" is no number of seconds', param, ctx)
        return seconds


def reach_options(command: F) -> F:
    """Add `--socket`, `--config` and `--timeout`; a command asks with `current_reach`."""
    for option in (
        click.option(
            "--timeout",
            type=Seconds(min=0, min_open=True),
            default=30.0,
            show_default=True,
            metavar="SECONDS",
            expose_value=False,
            callback=_remember,
            help="How long to wait for an answer.",
        ),
        click.option(
            "--config",
            type=click.Path(path_type=Path),
            envvar="NUMALIGN_CONFIG",
            show_envvar=True,
            expose_value=False,
            callback=_remember_place,
            help="Configuration file of the services, to find their sockets.",
        ),
        click.option(
            "--socket",
            type=click.Path(path_type=Path),
            envvar="NUMALIGN_SOCKET",
            show_envvar=True,
            expose_value=False,
            callback=_remember_place,
            help="Socket of the Admission service; the others are looked for beside it.",
        ),
    ):
        command = option(command)
    return command


def node_options(command: F) -> F:
    """Add `--node`, `--namespace` and `--context`, beside `reach_options`, for other nodes."""
    for option in (
        click.option(
            "--context",
            default="",
            metavar="NAME",
            expose_value=False,
            callback=_remember,
            help="With --node: the context of the kubeconfig; the current one by default.",
        ),
        click.option(
            "--namespace",
            default=NAMESPACE,
            show_default=True,
            metavar="NAME",
            expose_value=False,
            callback=_remember,
            help="With --node: where numalign is in the cluster.",
        ),
        click.option(
            "--node",
            default="",
            metavar="NODE",
            expose_value=False,
            callback=_remember,
            help="A node of the cluster, reached through its numalign pod by kubectl.",
        ),
    ):
        command = option(command)
    return command


def current_reach() -> Reach:
    """Where the running command was told to look, and how long to wait."""
    context = click.get_current_context()
    meta = context.meta
    remote = None
    if meta.get(f"{_PREFIX}.node"):
        for name in ("socket", "config"):
            if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                raise click.UsageError(f"--node and --{name} exclude each other")
        remote = RemoteNode(
            node=meta[f"{_PREFIX}.node"],
            namespace=meta[f"{_PREFIX}.namespace"],
            context=meta[f"{_PREFIX}.context"],
        )
    return Reach(
        socket=meta[f"{_PREFIX}.socket"],
        config=meta[f"{_PREFIX}.config"],
        timeout=meta[f"{_PREFIX}.timeout"],
        remote=remote,
    )


def _remember(ctx: click.Context, parameter: click.Parameter, value: object) -> None:
    ctx.meta[f"{_PREFIX}.{parameter.name}"] = value


def _remember_place(ctx: click.Context, parameter: click.Parameter, value: Path | None) -> None:
    # An empty path would be taken for the working directory.
    if value is not None and str(value) in {"", "."}:
        raise click.BadParameter("must name a file", ctx, parameter)
    _remember(ctx, parameter, value)


def examples(*commands: str) -> str:
    """The end of a command's help: one example a line, kept as they are."""
    return "\b\nExamples:\n" + "\n".join(f"  {command}" for command in commands)


def config_option(command: F) -> F:
    """Add `--config` for commands that start services or read the configuration themselves."""
    return click.option(
        "--config",
        type=click.Path(path_type=Path),
        envvar="NUMALIGN_CONFIG",
        show_envvar=True,
        help="Configuration file; without one, everything has its default.",
    )(command)


def environment() -> tuple[dict[str, str], bool]:
    """What default directories depend on: the environment, and whether the user is root."""
    return dict(os.environ), os.geteuid() == 0

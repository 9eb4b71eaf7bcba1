"""The `numalign-agent` command: its sub-commands by name, each imported when it is run."""

from __future__ import annotations

import os

import click

from numalign.cli.lazy_group import LazyGroup
from numalign.cli.options import examples, output_option

_COMMANDS = "numalign_agent.cli"

_LAZY: dict[str, tuple[str, str]] = {
    "run": (f"{_COMMANDS}.run:run", "Run the agent."),
    "pods": (f"{_COMMANDS}.pods:pods", "Show the pods of this node and what became of them."),
    "journal": (f"{_COMMANDS}.journal:journal", "Show what the agent decided and did."),
    "nri": (f"{_COMMANDS}.nri:nri", "Pin containers through the container runtime."),
    "node": (f"{_COMMANDS}.node:node", "Tell the cluster how this node stands."),
}


class _Commands(LazyGroup):
    lazy = _LAZY


@click.group(
    epilog=examples(
        "numalign-agent run --config /etc/numalign/config.yaml",
        "numalign-agent pods",
        "numalign-agent -o json journal",
    ),
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="numalign", message="numalign-agent %(version)s")
@output_option
def cli() -> None:
    """A node agent that has pods admitted by numalign, and runs them.

    Exit codes: 0 done, 1 error, 2 wrong usage.
    """


def main() -> None:
    """The entry point of the command."""
    # gRPC says on standard error what becomes of its connections. It reads this when it is
    # imported, which commands do later.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    cli(prog_name="numalign-agent")

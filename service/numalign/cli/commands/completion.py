"""`numalign completion`: the script that makes a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from numalign.cli.options import examples

_SHELLS = ("bash", "zsh", "fish")


@click.command(
    epilog=examples(
        "source <(numalign completion bash)",
        "numalign completion fish > ~/.config/fish/completions/numalign.fish",
    )
)
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print a script that makes a shell complete numalign's commands and options."""
    root = click.get_current_context().find_root()
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"completion for {shell} is not known to click")
    click.echo(kind(root.command, {}, "numalign", "_NUMALIGN_COMPLETE").source())

"""A command group that imports a command only when it is run.

Separate because a service is started through the same command line as everything else, and
must not pay in memory and time for tables and manifests that it never shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import click

from numalign.cli.failure import CommandFailed, describe


class LazyGroup(click.Group):
    """A group whose commands are `module:attribute` and a line of help, by name in `lazy`.

    Failures that numalign foresees end a command with one line each on standard error.
    """

    lazy: Mapping[str, tuple[str, str]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order given."""
        return [*self.lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self.lazy[cmd_name][0].partition(":")
        command = getattr(import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{module}:{attribute} is no command")
        return command

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in the help, without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.lazy.items()])

    def invoke(self, ctx: click.Context) -> object:
        """Run, with failures as lines."""
        try:
            outcome: object = super().invoke(ctx)
        except Exception as error:
            lines = describe(error)
            if lines is None:
                raise
            raise CommandFailed(*lines) from error
        return outcome

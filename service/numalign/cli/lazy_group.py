"""A command group that imports a command only when it is run.

Separate because a service is started through the same command line as everything else, and
must not pay in memory and time for tables and manifests that it never shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING

import click

from numalign.cli.failure import CommandFailed, describe

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class LazyGroup(click.Group):
    """A group whose commands are `module:attribute` and a line of help, by name in `lazy`.

    Commands of other packages are the entry points of the group `others`, if it is named; they
    are looked for only when they are needed.

    Failures that numalign foresees end a command with one line each on standard error.
    """

    lazy: Mapping[str, tuple[str, str]] = {}
    others: str = ""

    @cached_property
    def _others(self) -> Mapping[str, EntryPoint]:
        if not self.others:
            return {}
        from importlib.metadata import entry_points  # noqa: PLC0415 - slow, and seldom needed

        return {point.name: point for point in entry_points(group=self.others)}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order given."""
        return [*self.lazy, *self._others, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        if cmd_name in self.lazy:
            module, _, attribute = self.lazy[cmd_name][0].partition(":")
            return _command(getattr(import_module(module), attribute), self.lazy[cmd_name][0])
        if cmd_name in self._others:
            return _command(self._others[cmd_name].load(), self._others[cmd_name].value)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in the help, without importing any of the own commands."""
        own = [(name, text) for name, (_, text) in self.lazy.items()]
        others = [
            (name, _command(point.load(), point.value).get_short_help_str(limit=100))
            for name, point in self._others.items()
        ]
        with formatter.section("Commands"):
            formatter.write_dl([*own, *others])

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


def _command(found: object, where: str) -> click.Command:
    if not isinstance(found, click.Command):
        raise TypeError(f"{where} is no command")
    return found

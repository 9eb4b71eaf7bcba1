"""One of two drawings of the same, by how wide the terminal is.

Separate from the tables: they do not know where they are printed. A table of many columns that
is squeezed breaks words in the middle; where there is no room for it, another form is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

WIDE = 100
"""So many columns a terminal has to have for tables of many columns."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """What is drawn on a wide terminal, and what on a narrow one."""

    wide: Callable[[], RenderableType]
    narrow: Callable[[], Iterable[RenderableType]]

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the form that there is room for."""
        if options.max_width >= WIDE:
            yield self.wide()
        else:
            yield from self.narrow()

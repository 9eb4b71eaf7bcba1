"""What rich draws, as plain text."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, RenderableType


def text_of(renderables: Iterable[RenderableType], width: int = 110) -> str:
    """The text without trailing blanks."""
    console = Console(width=width, no_color=True, highlight=False)
    with console.capture() as capture:
        for renderable in renderables:
            console.print(renderable)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def words_of(renderables: Iterable[RenderableType]) -> list[str]:
    """Every line that is not blank, its words one blank apart."""
    lines = (" ".join(line.split()) for line in text_of(renderables, width=200).splitlines())
    return [line for line in lines if line]

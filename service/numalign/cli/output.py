"""Writing an answer in the format that was asked for.

A command hands over plain data for programs and a function that draws it for people; rich and
YAML are imported only by whoever needs them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from numalign.cli.options import Output, output_format

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_WIDTH_OF_A_PIPE = 120


def emit(document: object, draw: Callable[[], Iterable[RenderableType]]) -> None:
    """Write `document`, plain data, or what `draw` makes of it, to standard output."""
    output = output_format()
    if output is Output.JSON:
        click.echo(json.dumps(document, indent=2))
    elif output is Output.YAML:
        click.echo(yaml_text(document), nl=False)
    else:
        show(draw())


def show(renderables: Iterable[RenderableType]) -> None:
    """Write what people read to standard output."""
    console = console_of_stdout()
    for renderable in renderables:
        console.print(renderable)


def console_of_stdout() -> Console:
    """A console on standard output; wide where that is no terminal, since nobody wraps it."""
    from rich.console import Console  # noqa: PLC0415 - large, and only for people

    terminal = sys.stdout.isatty()
    return Console(width=None if terminal else _WIDTH_OF_A_PIPE, highlight=False, soft_wrap=False)


def yaml_text(document: object) -> str:
    """The document as YAML, keys in their order."""
    import yaml  # noqa: PLC0415 - only for this format

    text: str = yaml.safe_dump(document, sort_keys=False, width=100, allow_unicode=True)
    return text


def plain(message: Message) -> dict[str, Any]:
    """A message as plain data in the JSON form of protobuf, with every field that it has.

    64-bit numbers are text there, and enum values are names.
    """
    document: dict[str, Any] = MessageToDict(message, always_print_fields_with_no_presence=True)
    return document

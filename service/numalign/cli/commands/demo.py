"""`numalign demo`: see it all at work on a made-up machine."""

from __future__ import annotations

import click

from numalign.cli.calls import run
from numalign.cli.failure import CommandFailed
from numalign.cli.options import examples
from numalign.cli.output import console_of_stdout


@click.command(epilog=examples("numalign demo"))
def demo() -> None:
    """Start the five services on a made-up machine, admit sample pods, and explain each answer.

    Needs no root and leaves nothing behind. It ends with the way of one admission through the
    services, as a trace.

    Exit codes: 0 if everything went as it has to, 1 if not.
    """
    from numalign.cli.demo.story import tell  # noqa: PLC0415 - large, and not for --help

    found = run(tell(console_of_stdout()))
    if found:
        raise CommandFailed(*found)

"""`numalign snapshot`: a node at this moment, in a file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from numalign.cli.failure import say
from numalign.cli.options import examples, node_options, reach_options
from numalign.cli.snapshot.document import document_of
from numalign.cli.snapshot.live import live_node
from numalign.cli.verdicts import Exit


@click.command(
    epilog=examples(
        "numalign snapshot > node.json",
        "numalign snapshot --to node.json",
        "numalign simulate --snapshot node.json pod.yaml",
    )
)
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to this file, for its owner alone, not to standard output.",
)
@node_options
@reach_options
def snapshot(to: Path | None) -> None:
    """Write down a node: configuration, machine, who has what, and what was decided of late.

    The file is JSON. `numalign simulate`, `top` and `report` take it in place of a node that
    runs. What pods run (commands, environment) and most annotations are left out of it.

    Exit codes: 0 if everything answered, 1 if not: what is missing is named.
    """
    found, problems = live_node()
    text = json.dumps(document_of(found), indent=1)
    if to is None:
        click.echo(text)
    else:
        with os.fdopen(os.open(to, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text + "\n")
    say(problems)
    if problems:
        click.get_current_context().exit(Exit.ERROR)

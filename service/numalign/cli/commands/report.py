"""`numalign report`: a page about the node."""

from __future__ import annotations

from pathlib import Path

import click

from numalign.cli.failure import say
from numalign.cli.options import examples, node_options, reach_options
from numalign.cli.report.page import report_page
from numalign.cli.snapshot.live import node_of, snapshot_option
from numalign.cli.verdicts import Exit


@click.command(
    epilog=examples(
        "numalign report -o node.html", "numalign report --snapshot node.json -o node.html"
    )
)
@click.option(
    "-o",
    "--output",
    "file",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="Write the page to this file; - is standard output.",
)
@snapshot_option
@node_options
@reach_options
def report(file: Path, snapshot: Path | None) -> None:
    """Write a page about the node: machine, owners, fragmentation, pods and recent refusals.

    The page is one file that loads nothing. It names pods and what they hold.

    Exit codes: 0 if everything answered, 1 if not: the page names what is missing.
    """
    node, problems = node_of(snapshot)
    page = report_page(node, problems)
    if str(file) == "-":
        click.echo(page, nl=False)
    else:
        file.write_text(page, encoding="utf-8")
    say(problems)
    if problems:
        click.get_current_context().exit(Exit.ERROR)

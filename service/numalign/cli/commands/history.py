"""`numalign history`: what was decided of late."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from numalign.cli.calls import ask_services
from numalign.cli.journal.calls import list_decisions
from numalign.cli.journal.gaps import nothing_found
from numalign.cli.journal.moments import Moment
from numalign.cli.options import current_reach, examples, node_options, output_option, reach_options
from numalign.cli.output import emit, plain
from numalign.config.settings import Service
from numalign.v1 import decisions_pb2 as dc
from numalign.v1 import types_pb2 as pb

if TYPE_CHECKING:
    from rich.console import RenderableType

VERDICTS: Mapping[str, pb.Verdict.ValueType] = {
    "admitted": pb.VERDICT_ADMITTED,
    "rejected": pb.VERDICT_REJECTED,
    "deferred": pb.VERDICT_DEFERRED,
}

_SHOWN = "%Y-%m-%d %H:%M:%S"


@click.command(
    epilog=examples(
        "numalign history",
        "numalign history --verdict rejected --since 1h",
        "numalign history --pod default/analytics --explanations -o json",
    )
)
@click.option(
    "--verdict", "verdicts", multiple=True, type=click.Choice(list(VERDICTS)), help="Only these."
)
@click.option(
    "--reason",
    "reasons",
    multiple=True,
    metavar="REASON",
    help="Only these reasons, such as TopologyAffinityError.",
)
@click.option("--pod", default="", metavar="POD", help="Only this pod: a name or a UID.")
@click.option("--owner", default="", metavar="NAME", help="Only pods of this owner.")
@click.option("--since", type=Moment(), metavar="WHEN", help="Since 10m ago, or since a time.")
@click.option("--until", type=Moment(), metavar="WHEN", help="Before 10m ago, or before a time.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, 1_000_000),
    default=20,
    show_default=True,
    help="At most so many, the newest.",
)
@click.option("--explanations", is_flag=True, help="With whole explanations, in JSON and YAML.")
@node_options
@reach_options
@output_option
def history(
    verdicts: tuple[str, ...],
    reasons: tuple[str, ...],
    pod: str,
    owner: str,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    explanations: bool,
) -> None:
    """List what was decided on pods of late, the newest first.

    An agent that asked again and heard the same is counted, not listed again. Dry runs are no
    decisions. `numalign explain` says everything about one of them.
    """
    wanted = dc.DecisionFilter(
        verdicts=[VERDICTS[verdict] for verdict in verdicts],
        reasons=reasons,
        pod=pod,
        owner=owner,
    )
    if since is not None and until is not None and since >= until:
        raise click.UsageError(f"--since {since:{_SHOWN}} is not before --until {until:{_SHOWN}}")
    if since is not None and since > datetime.now(UTC):
        raise click.UsageError(f"--since {since:{_SHOWN}} is in the future")
    if since is not None:
        wanted.since.FromDatetime(since)
    if until is not None:
        wanted.until.FromDatetime(until)
    request = dc.ListDecisionsRequest(filter=wanted, limit=limit, with_explanations=True)
    seconds = current_reach().timeout
    found, kept, names = ask_services(
        lambda services: list_decisions(services[Service.ADMISSION], request, seconds),
        Service.ADMISSION,
    )

    def draw() -> Iterator[RenderableType]:
        from rich.text import Text  # noqa: PLC0415 - large, and only for people

        from numalign.cli.tables.journal import decisions  # noqa: PLC0415 - as above

        if found.decisions:
            yield decisions(found.decisions, names)
        else:
            yield from map(Text, nothing_found(wanted, kept))
        if found.left_out:
            yield Text(f"\n{found.left_out} older ones are not shown; --limit shows more")

    if not explanations:
        emit(_without_explanations(found), draw)
    else:
        emit(plain(found), draw)


def _without_explanations(found: dc.ListDecisionsResponse) -> dict[str, object]:
    """The answer as plain data, without what nobody asked for."""
    document = plain(found)
    for decision in document["decisions"]:
        decision.pop("explanation", None)
    return document
